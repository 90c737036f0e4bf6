/** What stands beside a graph when it is asked for, in one file: apart, they would compress worse. */
import { startSources } from "../../state/moments/sources.ts";
import { versionHistory } from "../../state/moments/versionHistory.ts";
import { startBeside } from "../../state/screen/spent.ts";

export { Quality } from "../chart/Quality.tsx";
export { ValueMenu } from "../chart/ValueMenu.tsx";
export { WindowQuality } from "../chart/WindowQuality.tsx";
export { FrameMenu } from "../flame/FrameMenu.tsx";
export { Tooltip } from "../flame/Tooltip.tsx";
export { SourcesDialog } from "../frame/SourcesDialog.tsx";
export { Legend } from "../ui/ColourKey.tsx";
export { WheelHintText } from "../wheel/WheelHintText.tsx";
export { frameActions, treeActions } from "./actions.ts";
export { Chips } from "./Chips.tsx";
export { DownloadLinks } from "./DownloadLinks.tsx";
export { FramePanel } from "./FramePanel.tsx";
export { FrameTree } from "./FrameTree.tsx";
export { RankTable } from "./RankTable.tsx";
export { SpentBy } from "./SpentBy.tsx";

export function start(): void {
  startBeside();
  versionHistory.start();
  startSources();
}
