/**
 * What the first picture of the page does not need. Each file that is fetched later stands here and nowhere else, so
 * that these imports close the only circles that there are.
 */
import { begin, lazy } from "./lazyView.tsx";
import { Busy, Missing } from "./ui/Notices.tsx";

const waiting = <Missing error={null} loading={true} kind="chart" />;

const compare = () => import("./compare/Compare.tsx").then(begin);
const panels = () => import("./bar/Panels.ts");
const frames = () => import("./graph/Frames.ts").then(begin);
const timeline = () => import("./timeline/Timeline.tsx").then(begin);

export const Compare = lazy(() => compare().then((file) => file.Compare), waiting);
export const CompareProfile = lazy(
  () => compare().then((file) => file.CompareProfile),
  <Missing error={null} loading={true} kind="graph" />,
);
export const Heatmap = lazy(() => import("./heatmap/Heatmap.tsx").then((file) => file.Heatmap), waiting);
export const Timeline = lazy(() => timeline().then((file) => file.Timeline), waiting);
export const Nodes = lazy(() => import("./nodes/Nodes.tsx").then((file) => file.Nodes), waiting);
export const HelpDialog = lazy(() => panels().then((file) => file.HelpDialog));
export const InstallLine = lazy(() => panels().then((file) => file.InstallLine));
export const ShareChoices = lazy(() => panels().then((file) => file.ShareChoices));
export const ProfileTypes = lazy(() => panels().then((file) => file.ProfileTypes));
export const Moments = lazy(() => panels().then((file) => file.Moments));
export const DownloadLinks = lazy(() => frames().then((file) => file.DownloadLinks));
export const RankTable = lazy(() => frames().then((file) => file.RankTable), <Busy on={true} />);
export const FramePanel = lazy(() => frames().then((file) => file.FramePanel), <Busy on={true} />);
export const FrameTree = lazy(() => frames().then((file) => file.FrameTree), <Busy on={true} />);
