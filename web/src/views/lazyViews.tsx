/** What the first picture of the page does not need. */
import { lazy } from "./lazyView.tsx";
import { Busy, Missing } from "./ui/Notices.tsx";

const waiting = <Missing error={null} loading={true} kind="chart" />;

export const Compare = lazy(() => import("./compare/Compare.tsx").then((part) => part.Compare), waiting);
export const CompareProfile = lazy(
  () => import("./compare/Compare.tsx").then((part) => part.CompareProfile),
  <Missing error={null} loading={true} kind="graph" />,
);
export const Heatmap = lazy(() => import("./heatmap/Heatmap.tsx").then((part) => part.Heatmap), waiting);
export const Timeline = lazy(() => import("./timeline/Timeline.tsx").then((part) => part.Timeline), waiting);
export const Nodes = lazy(() => import("./nodes/Nodes.tsx").then((part) => part.Nodes), waiting);
export const HelpDialog = lazy(() => import("./graph/Frames.ts").then((part) => part.HelpDialog));
export const FramePanel = lazy(() => import("./graph/Frames.ts").then((part) => part.FramePanel), <Busy on={true} />);
export const FrameTree = lazy(() => import("./graph/Frames.ts").then((part) => part.FrameTree), <Busy on={true} />);
