/** What the first picture of the page does not need. */
import { later } from "./lazyView.tsx";
import { Busy, Missing } from "./ui/Notices.tsx";

const waiting = <Missing error={null} loading={true} kind="chart" />;

export const Compare = later(() => import("./compare/Compare.tsx").then((part) => part.Compare), waiting);
export const CompareProfile = later(
  () => import("./compare/Compare.tsx").then((part) => part.CompareProfile),
  <Missing error={null} loading={true} kind="graph" />,
);
export const Heatmap = later(() => import("./heatmap/Heatmap.tsx").then((part) => part.Heatmap), waiting);
export const Timeline = later(() => import("./timeline/Timeline.tsx").then((part) => part.Timeline), waiting);
export const Nodes = later(() => import("./nodes/Nodes.tsx").then((part) => part.Nodes), waiting);
export const HelpDialog = later(() => import("./graph/Frames.ts").then((part) => part.HelpDialog));
export const FramePanel = later(() => import("./graph/Frames.ts").then((part) => part.FramePanel), <Busy on={true} />);
export const FrameTree = later(() => import("./graph/Frames.ts").then((part) => part.FrameTree), <Busy on={true} />);
