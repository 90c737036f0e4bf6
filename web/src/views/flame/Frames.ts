/** What stands beside a graph, in one file: apart, they would compress worse. */
export { FramePanel } from "./FramePanel.tsx";
export { FrameTree } from "./FrameTree.tsx";
