/** What stands beside a graph, and the keys, in one file: apart, they would compress worse. */
export { HelpDialog } from "../bar/HelpDialog.tsx";
export { FramePanel } from "./FramePanel.tsx";
export { FrameTree } from "./FrameTree.tsx";
