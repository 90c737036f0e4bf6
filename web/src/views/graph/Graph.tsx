/** The lower half of both views: tools, the frames, and what stands beside them. */
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import type { Measure, WindowMeasure } from "../../logic/graph/measure.ts";
import type { Tree } from "../../logic/tree/tree.ts";
import { isOpen, navigate, onceRested, page } from "../../state/address/page.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { colourPair } from "../../state/screen/pair.ts";
import { searchResult } from "../../state/screen/search.ts";
import { pointedFrame, pointedRow, select, selected } from "../../state/screen/selection.ts";
import { whenIdle } from "../../state/screen/slices.ts";
import { theme } from "../../state/screen/theme.ts";
import {
  changing,
  focus,
  isTreeStale,
  transformFile,
  tree,
  treeSubject,
  wholeSamples,
} from "../../state/screen/tree.ts";
import { counted } from "../../state/screen/units.ts";
import { Flamegraph, type FlamegraphProps } from "../flame/Flamegraph.tsx";
import type { FrameAction } from "../flame/FrameMenu.tsx";
import { showAll, zoomTo } from "../frame/steps.ts";
import { Unloaded } from "../lazyView.tsx";
import {
  actionsFile,
  actLater,
  Chips,
  FrameMenu,
  FramePanel,
  FrameTree,
  Legend,
  preloadFrames,
  Tooltip,
} from "../lazyViews.tsx";
import { Segments } from "../ui/Choice.tsx";
import { FoldButton } from "../ui/Fold.tsx";
import { NARROW, PHONE, useMedia } from "../ui/hooks.ts";
import { Busy, EmptyNotice } from "../ui/Notices.tsx";
import { ColourChoice, LegendButton, RowsChoice, shownColours } from "./Legends.tsx";
import { FRAME, FRAMES, Pane, PanePanel, type Tab, TabBar, tabOf } from "./Pane.tsx";
import { SearchBox, SearchFigures } from "./SearchBox.tsx";

export { findName } from "../frame/steps.ts";

interface Props {
  measure: Measure;
  loading: boolean;
  download: ComponentChildren;
  tools?: ComponentChildren;
  /** What stands beside the frames; that of the selected frame is the graph's own. */
  tabs: readonly Tab[];
  /** What draws the frames, where it is not one graph. */
  picture?: ComponentType<FlamegraphProps> | undefined;
}

const PANES = [
  ["both", "Both", "The graph, and what is told beside it"],
  ["graph", "Graph", "The graph alone"],
  ["tree", "Tree", "The same frames as a tree of text"],
  ["table", "Table", "What is told beside the graph alone"],
] as const;

/** A hand on the graph selects a frame, or changes the tree. */
function preload(): void {
  transformFile.preload();
  preloadFrames();
}

/** Keys of actions, with which the file of the actions is asked for where it is not there yet. */
const ACTION_KEYS = [..."oshmrilfbxvg"];

function actionsOf(shown: Tree, node: number | null): FrameAction[] {
  const file = actionsFile.value;
  if (file !== null) return node === null ? file.treeActions() : file.frameActions(shown, node);
  return ACTION_KEYS.map((key) => ({ key, label: key, hint: "", run: () => actLater(shown, node, key) }));
}

export function Graph({ measure, loading, download, tools, tabs: others, picture }: Props) {
  const { tree: shown, fault } = tree.value;
  const { pane, unit } = page.value;
  const isPhone = useMedia(PHONE);
  const isNarrow = useMedia(NARROW);
  const isShown = shown !== null;
  // Behind the first picture: what is done with a frame next is then there.
  useEffect(() => {
    if (isShown) whenIdle(preloadFrames);
  }, [isShown]);
  const zoomed = focus.value;
  const whole = {
    ...measure,
    samples: wholeSamples.value,
    unit: counted.value,
    choice: unit,
    sideNames: sideNames.value,
  };
  const busy = loading || changing.value;
  // Without the file that changes trees, what was there before stays.
  const lost = changing.value && transformFile.failed.value && <Unloaded onRetry={transformFile.load} />;
  if (shown === null)
    return fault === "" ? lost || <Busy on={busy} /> : <EmptyNotice title={`The answer is broken: ${fault}.`} />;
  const tabs = [
    ...others,
    { id: FRAME, title: "Frame", content: () => <SelectedFrame tree={shown} measure={whole} /> },
  ];
  const frames =
    pane === "tree" ? <Outline tree={shown} measure={whole} /> : <Picture tree={shown} measure={whole} as={picture} />;
  return (
    <section class="card graph" aria-label="Profile" onPointerEnter={preload} onFocusCapture={preload}>
      <Busy on={busy && lost === false} />
      {isPhone && <PhoneTabs tabs={tabs} />}
      <div class="toolbar" hidden={isPhone && !isOpen("graph")}>
        <Segments name="Show" value={pane} options={PANES} onChoose={(chosen) => navigate({ pane: chosen })} />
        <SearchBox />
        <SearchFigures />
        <span class="spring" />
        {isNarrow && !isPhone && <GraphFold />}
        {(!isNarrow || isOpen("graph")) && (
          <>
            {tools}
            <RowsChoice />
            <ColourChoice />
            <LegendButton />
            <LayoutButton />
            {download}
          </>
        )}
      </div>
      {isOpen("key") && (
        <div class="legendbar">
          <Legend by={shownColours()} />
        </div>
      )}
      {lost}
      {zoomed.lost && (
        <div class="notice empty slim">
          The zoomed frame has no samples in this window, so all is shown.
          <button type="button" class="button" onClick={() => navigate({ focus: "" })}>
            Clear zoom
          </button>
        </div>
      )}
      {isPhone ? (
        <PhonePanes tabs={tabs} frames={frames} />
      ) : (
        <div class={`panes ${pane}`} aria-busy={isTreeStale.value}>
          {pane !== "table" && frames}
          {pane !== "graph" && <Pane tabs={tabs} />}
        </div>
      )}
      {pane === "table" && <Chips />}
    </section>
  );
}

/** By itself: which way the frames stand makes nothing else of the card anew, such as the tables beside them. */
function LayoutButton() {
  const isIcicle = page.value.layout === "icicle";
  return (
    <button
      type="button"
      class="button"
      aria-label={isIcicle ? "Icicle" : "Flame"}
      title={isIcicle ? "Icicle: put the root at the bottom" : "Flame: put the root on top"}
      onClick={() => navigate({ layout: isIcicle ? "flame" : "icicle" })}
    >
      ⇅
    </button>
  );
}

/** Where there is no room for all controls in a line. */
function GraphFold() {
  return (
    <FoldButton fold="graph" name="Find a function, and other controls of the graph" class="icon">
      ⋯
    </FoldButton>
  );
}

/** On a phone the frames are one of the tabs; the tools are one tap away. */
function PhoneTabs({ tabs }: { tabs: readonly Tab[] }) {
  const { pane } = page.value;
  const chosen = pane === "table" ? (tabOf(tabs)?.id ?? "") : FRAMES;
  const all = [{ id: FRAMES, title: pane === "tree" ? "Tree" : "Frames", content: () => null }, ...tabs];
  return (
    <div class="phone-tabs">
      <TabBar
        tabs={all}
        chosen={chosen}
        onChoose={(id) => {
          if (id === FRAMES) navigate({ pane: "both" });
          else navigate({ pane: "table", tab: id });
        }}
      />
      <GraphFold />
    </div>
  );
}

function PhonePanes({ tabs, frames }: { tabs: readonly Tab[]; frames: ComponentChildren }) {
  const { pane } = page.value;
  const tab = tabOf(tabs);
  if (pane !== "table")
    return (
      <div class={`panes ${pane === "tree" ? "tree" : "graph"}`} aria-busy={isTreeStale.value}>
        {frames}
      </div>
    );
  return <div class="panes table">{tab !== undefined && <PanePanel tab={tab} />}</div>;
}

function SelectedFrame({ tree: shown, measure }: { tree: Tree; measure: WindowMeasure }) {
  const node = selected.value;
  if (node === null)
    return (
      <p class="pane-hint dim">
        Click a frame, or walk to one with the arrow keys: its samples, its history, its callers and callees stand here.
      </p>
    );
  return <FramePanel tree={shown} node={node} focus={focus.value.node} measure={measure} />;
}

function Outline({ tree: shown, measure }: { tree: Tree; measure: WindowMeasure }) {
  return (
    <div class="outline">
      <FrameTree
        tree={shown}
        subject={treeSubject.value}
        focus={focus.value.node}
        selected={selected.value}
        theme={theme.value}
        colourBy={page.value.colour || "module"}
        measure={measure}
        open={page.value.open}
        onSelect={select}
        onOpen={(text) => navigate({ open: text })}
        onZoom={zoomTo}
        onReset={showAll}
      />
      <Chips />
    </div>
  );
}

interface PictureProps {
  tree: Tree;
  measure: WindowMeasure;
  as: ComponentType<FlamegraphProps> | undefined;
}

/** By itself: a letter of a search, and a row that is pointed at, make nothing else of the card anew. */
function Picture({ tree: shown, measure, as: Frames = Flamegraph }: PictureProps) {
  const { layout, colour, part } = page.value;
  return (
    <Frames
      tree={shown}
      subject={treeSubject.value}
      focus={focus.value.node}
      search={searchResult.value}
      selected={selected.value}
      pointed={pointedRow.value}
      theme={theme.value}
      colourBy={colour || (shown.diff ? "difference" : "module")}
      pair={colourPair.value}
      flame={layout === "flame"}
      measure={measure}
      part={part}
      actionsOf={(node) => actionsOf(shown, node)}
      onZoom={zoomTo}
      onSelect={select}
      onPart={(text) => navigate({ part: text }, "part")}
      onceRested={onceRested}
      onReset={showAll}
      foot={<Chips />}
      tip={Tooltip}
      frameMenu={FrameMenu}
      onPoint={(name) => {
        pointedFrame.value = name;
      }}
    />
  );
}
