/** The lower half of both views: tools, flamegraph and table side by side. */
import type { ComponentChildren } from "preact";
import type { Measure, WindowMeasure } from "../../logic/graph/measure.ts";
import type { Tree } from "../../logic/tree/tree.ts";
import { navigate, page } from "../../state/address/page.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { searchResult } from "../../state/screen/search.ts";
import { pointedFrame, pointedRow, select, selected } from "../../state/screen/selection.ts";
import { theme } from "../../state/screen/theme.ts";
import { changing, focus, transformFile, tree, wholeSamples } from "../../state/screen/tree.ts";
import { counted } from "../../state/screen/units.ts";
import { Flamegraph } from "../flame/Flamegraph.tsx";
import { Unloaded } from "../lazyView.tsx";
import { FramePanel, FrameTree } from "../lazyViews.tsx";
import { Segments } from "../ui/Choice.tsx";
import { Busy, EmptyNotice } from "../ui/Notices.tsx";
import { frameActions, showAll, treeActions, zoomTo } from "./actions.ts";
import { Chips } from "./Chips.tsx";
import { ChangeLegend, ColourChoice, KindLegend, ModuleLegend } from "./Legends.tsx";
import { SearchBox, SearchFigures } from "./SearchBox.tsx";

export { findName } from "./actions.ts";

interface Props {
  measure: Measure;
  loading: boolean;
  download: ComponentChildren;
  tools?: ComponentChildren;
  table: ComponentChildren;
}

const PANES = [
  ["both", "Both"],
  ["graph", "Graph"],
  ["tree", "Tree"],
  ["table", "Table"],
] as const;

/** A hand on the graph selects a frame, or changes the tree. */
function preload(): void {
  transformFile.preload();
  FramePanel.preload();
}

export function Graph({ measure, loading, download, tools, table }: Props) {
  const { tree: shown, fault } = tree.value;
  const { pane, layout, colour, open } = page.value;
  const zoomed = focus.value;
  const colourBy = colour || (shown?.diff ? "difference" : "kind");
  const whole = { ...measure, samples: wholeSamples.value, unit: counted.value, sideNames: sideNames.value };
  const busy = loading || changing.value;
  // Without the file that changes trees, what was there before stays.
  const lost = changing.value && transformFile.failed.value && <Unloaded onRetry={transformFile.load} />;
  if (shown === null)
    return fault === "" ? lost || <Busy on={busy} /> : <EmptyNotice title={`The answer is broken: ${fault}.`} />;
  return (
    <section class="card graph" aria-label="Profile" onPointerEnter={preload} onFocusCapture={preload}>
      <Busy on={busy && lost === false} />
      <div class="toolbar">
        <SearchBox />
        <SearchFigures />
        <span class="spring" />
        {tools}
        <Segments name="Show" value={pane} options={PANES} onChoose={(chosen) => navigate({ pane: chosen })} />
        <button
          type="button"
          class="button"
          title={layout === "icicle" ? "Put the root at the bottom" : "Put the root on top"}
          onClick={() => navigate({ layout: layout === "icicle" ? "flame" : "icicle" })}
        >
          ⇅ {layout === "icicle" ? "Icicle" : "Flame"}
        </button>
        {download}
      </div>
      <div class="legendbar">
        {colourBy === "difference" ? <ChangeLegend /> : colourBy === "kind" ? <KindLegend /> : <ModuleLegend />}
        <span class="spring" />
        <ColourChoice />
      </div>
      <Chips />
      {lost}
      {zoomed.lost && (
        <div class="notice empty slim">
          The zoomed frame has no samples in this window, so all is shown.
          <button type="button" class="button" onClick={() => navigate({ focus: "" })}>
            Forget it
          </button>
        </div>
      )}
      <div class={`panes ${pane}`}>
        {pane === "tree" && (
          <FrameTree
            tree={shown}
            focus={zoomed.node}
            selected={selected.value}
            theme={theme.value}
            measure={whole}
            open={open}
            onSelect={select}
            onOpen={(text) => navigate({ open: text })}
            onZoom={zoomTo}
            onReset={showAll}
          />
        )}
        {(pane === "both" || pane === "graph") && <Picture tree={shown} measure={whole} />}
        {(pane === "both" || pane === "table") && table}
      </div>
      {selected.value !== null && <FramePanel tree={shown} node={selected.value} focus={zoomed.node} measure={whole} />}
    </section>
  );
}

/** By itself: a letter of a search, and a row that is pointed at, make nothing else of the card anew. */
function Picture({ tree: shown, measure }: { tree: Tree; measure: WindowMeasure }) {
  const { layout, colour, part } = page.value;
  return (
    <Flamegraph
      tree={shown}
      focus={focus.value.node}
      search={searchResult.value}
      selected={selected.value}
      pointed={pointedRow.value}
      theme={theme.value}
      colourBy={colour || (shown.diff ? "difference" : "kind")}
      flame={layout === "flame"}
      measure={measure}
      part={part}
      actionsOf={(node) => (node === null ? treeActions() : frameActions(shown, node))}
      onZoom={zoomTo}
      onSelect={select}
      onPart={(text) => navigate({ part: text }, "part")}
      onReset={showAll}
      onPoint={(name) => {
        pointedFrame.value = name;
      }}
    />
  );
}
