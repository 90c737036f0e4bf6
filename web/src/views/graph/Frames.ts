/** What stands beside a graph, and the keys, in one file: apart, they would compress worse. */
export { startFrame as start } from "../../state/screen/frame.ts";
export { HelpDialog } from "../bar/HelpDialog.tsx";
export { FramePanel } from "./FramePanel.tsx";
export { FrameTree } from "./FrameTree.tsx";
