/**
 * What the first picture of the page does not need. Each file that is fetched later stands here and nowhere else, so
 * that these imports close the only circles that there are.
 */
import type { Tree } from "../logic/tree/tree.ts";
import { askedFor } from "../state/address/page.ts";
import { lazyFile } from "../state/lazyFile.ts";
import { say } from "../state/moments/said.ts";
import { shownTable } from "../state/moments/shownTable.ts";
import { begin, lazy, withStyles } from "./lazyView.tsx";
import { Busy, Missing } from "./ui/Notices.tsx";

const waiting = <Missing error={null} loading={true} kind="chart" />;

const compare = () => withStyles(import("./compare/Compare.tsx")).then(begin);
const panels = () => withStyles(import("./bar/Panels.ts"));
const frames = () => withStyles(import("./graph/Frames.ts")).then(begin);
const markers = () => withStyles(import("./markers/Markers.ts")).then(begin);
const siblings = () => import("./scope/Siblings.tsx").then(begin);
const waits = () => withStyles(import("./threads/Waits.ts")).then(begin);
const timeline = () => withStyles(import("./timeline/Timeline.tsx")).then(begin);

/** What is meant by what is typed into a box for selectors; null where that can't be had now. */
export const meaning = () => import("../state/screen/meaning.ts").catch(() => null);

/** Saves what is in sight as a file of its own. */
export function saveAs(kind: "html" | "png" | "svg"): void {
  import("./picture/save.ts")
    .then((file) => file.saveFile(kind, shownTable.peek()))
    .catch(() => say("The file could not be made: load the page anew.", true));
}

/** What can be done with a frame; null until it is there. */
const framesFile = lazyFile(frames);
export const actionsFile = framesFile.content;

/** What a hand near the graph asks for next: before it is there, nothing of it is missed. */
export const preloadFrames = framesFile.preload;

/** An action whose key came before its file did, unless something else was chosen by then. */
export function actLater(tree: Tree, node: number | null, key: string): void {
  const asked = askedFor.peek();
  frames().then(
    (file) => {
      if (askedFor.peek() !== asked) return;
      const actions = node === null ? file.treeActions() : file.frameActions(tree, node);
      actions.find((action) => action.key === key)?.run();
    },
    () => say("A part of the page could not be loaded: load it anew.", true),
  );
}

export const Compare = lazy(() => compare().then((file) => file.Compare), waiting);
export const CompareProfile = lazy(
  () => compare().then((file) => file.CompareProfile),
  <Missing error={null} loading={true} kind="graph" />,
);
/** Without them the chart is whole. */
export const ChangeButtons = lazy(
  () => import("./explore/ChangeButtons.tsx").then((file) => file.ChangeButtons),
  null,
  false,
);
export const ChangedMost = lazy(() => compare().then((file) => file.ChangedMost), <Busy on={true} />);
export const Heatmap = lazy(() => withStyles(import("./heatmap/Heatmap.tsx")).then((file) => file.Heatmap), waiting);
export const Timeline = lazy(() => timeline().then((file) => file.Timeline), waiting);
export const Threads = lazy(
  () =>
    withStyles(import("./threads/Threads.tsx"))
      .then(begin)
      .then((file) => file.Threads),
  waiting,
);
export const WaitChips = lazy(() => waits().then((file) => file.WaitChips), null, false);
export const WokenTool = lazy(() => waits().then((file) => file.WokenTool), null, false);
/** What draws the graph with who ended its waits. */
export const wokenFile = lazyFile(() => waits().then((file) => file.Woken));
export const Nodes = lazy(() => withStyles(import("./nodes/Nodes.tsx")).then((file) => file.Nodes), waiting);
export const HelpDialog = lazy(() => panels().then((file) => file.HelpDialog));
export const Lost = lazy(() => panels().then((file) => file.Lost), waiting);
export const SavedDialog = lazy(() => withStyles(import("./saved/SavedDialog.tsx")).then((file) => file.SavedDialog));
export const BurstsDialog = lazy(() =>
  withStyles(import("./bursts/BurstsDialog.tsx")).then((file) => file.BurstsDialog),
);
export const SourcesDialog = lazy(() => frames().then((file) => file.SourcesDialog));
export const InstallLine = lazy(() => panels().then((file) => file.InstallLine));
export const ShareChoices = lazy(() => panels().then((file) => file.ShareChoices));
export const ProfileTypes = lazy(() => panels().then((file) => file.ProfileTypes));
export const Palette = lazy(() => {
  // It looks for words in the same way, and would ask for the file only once it is there itself.
  void meaning();
  return withStyles(import("./palette/Palette.tsx")).then((file) => file.Palette);
});
export const Moments = lazy(() => panels().then((file) => file.Moments));
export const DownloadLinks = lazy(() => frames().then((file) => file.DownloadLinks));
export const RankTable = lazy(() => frames().then((file) => file.RankTable), <Busy on={true} />);
export const Chips = lazy(() => frames().then((file) => file.Chips), null, false);
export const ValueMenu = lazy(() => frames().then((file) => file.ValueMenu));
export const FrameMenu = lazy(() => frames().then((file) => file.FrameMenu));
/** Where these cannot be had, what is done next tells so. */
export const Tooltip = lazy(() => frames().then((file) => file.Tooltip), null, false);
export const WheelHintText = lazy(() => frames().then((file) => file.WheelHintText), null, false);
export const FramePanel = lazy(() => frames().then((file) => file.FramePanel), <Busy on={true} />);
export const FrameTree = lazy(() => frames().then((file) => file.FrameTree), <Busy on={true} />);
export const Quality = lazy(() => frames().then((file) => file.Quality), <Busy on={true} />);
export const WindowQuality = lazy(() => frames().then((file) => file.WindowQuality), <Busy on={true} />);
export const Legend = lazy(() => frames().then((file) => file.Legend));
export const SpentBy = lazy(() => frames().then((file) => file.SpentBy), <Busy on={true} />);
export const MarkerLane = lazy(() => markers().then((file) => file.MarkerLane), null, false);
export const MarkersMenu = lazy(() => markers().then((file) => file.MarkersMenu), null, false);
export const SaidNote = lazy(() => markers().then((file) => file.SaidNote), null, false);
export const Siblings = lazy(() => siblings().then((file) => file.Siblings), <Busy on={true} />);
export const TopLists = lazy(
  () => withStyles(import("./explore/TopLists.tsx")).then((file) => file.TopLists),
  <Busy on={true} />,
);
