/** What stands beside a graph when it is asked for, in one file: apart, they would compress worse. */
export { startFrame as start } from "../../state/screen/frame.ts";
export { DownloadLinks } from "./DownloadLinks.tsx";
export { FramePanel } from "./FramePanel.tsx";
export { FrameTree } from "./FrameTree.tsx";
export { RankTable } from "./RankTable.tsx";
