/** The lower half of both views: tools, flamegraph and table side by side. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Change, diffPaint, KINDS, kindSwatch, MARK, modulePaint } from "../../logic/colour.ts";
import { changeWords } from "../../logic/compare/sideNames.ts";
import { nextHit, patternName } from "../../logic/flame/search.ts";
import { count, percent, plural } from "../../logic/text/format.ts";
import { modulesOf } from "../../logic/tree/functions.ts";
import { ROOT, type Tree } from "../../logic/tree/tree.ts";
import { fields, navigate, page } from "../../state/address/page.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { matching, searchResult, wholeMatch } from "../../state/screen/search.ts";
import { pointedFrame, pointedRow, select, selected } from "../../state/screen/selection.ts";
import { theme } from "../../state/screen/theme.ts";
import { changing, focus, tree, upright, wholeSamples } from "../../state/screen/tree.ts";
import { amount, counted } from "../../state/screen/units.ts";
import { Flamegraph } from "../flame/Flamegraph.tsx";
import type { Measure, WindowMeasure } from "../flame/measure.ts";
import { FramePanel, FrameTree } from "../lazyViews.tsx";
import { Choice, Segments } from "../ui/Choice.tsx";
import { isTyping } from "../ui/hooks.ts";
import { Busy, EmptyNotice } from "../ui/Notices.tsx";
import { frameActions, showAll, treeActions, zoomTo } from "./actions.ts";
import { Chips } from "./Chips.tsx";

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

export function Graph({ measure, loading, download, tools, table }: Props) {
  const { tree: shown, fault } = tree.value;
  const { pane, layout, colour, open } = page.value;
  const zoomed = focus.value;
  const colourBy = colour || (shown?.diff ? "difference" : "kind");
  const whole = { ...measure, samples: wholeSamples.value, unit: counted.value, sideNames: sideNames.value };
  if (shown === null)
    return fault === "" ? (
      <Busy on={loading || changing.value} />
    ) : (
      <EmptyNotice title={`The answer is broken: ${fault}.`} />
    );
  return (
    <section class="card graph" aria-label="Profile">
      <Busy on={loading || changing.value} />
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

function SearchBox() {
  const { match } = page.value;
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || isTyping(event.target) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const wanted = matching.value;
  const fault = wanted !== null && "error" in wanted ? wanted.error : "";
  return (
    <div class={`search${fault === "" ? "" : " bad"}`}>
      <input
        ref={input}
        type="search"
        placeholder="Find a function or /regex/"
        aria-label="Find functions"
        aria-invalid={fault !== ""}
        title={fault || "Press / to come here. Text matches anywhere; /…/ is a regular expression."}
        spellcheck={false}
        value={match}
        data-testid="search"
        onInput={({ currentTarget: { value } }) => {
          // What is pasted is whole: it need not wait for the next letter.
          navigate({ match: value }, Math.abs(value.length - match.length) > 2 ? "" : "search");
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") jump(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") navigate({ match: "" });
        }}
      />
      {fault !== "" && (
        <span class="search-fault" role="alert">
          {fault}
        </span>
      )}
    </div>
  );
}

function jump(direction: 1 | -1): void {
  const shown = tree.value.tree;
  const found = searchResult.value;
  if (shown === null || found === null) return;
  const next = nextHit(shown, found.hits, selected.value ?? focus.value.node, direction);
  if (next === null) return;
  const within = next >= focus.value.node && next < (shown.end[focus.value.node] as number);
  select(next, within ? {} : { focus: "" });
}

function SearchFigures() {
  const found = searchResult.value;
  const shown = tree.value.tree;
  if (found === null || shown === null) return null;
  const atRoot = focus.value.node === ROOT;
  // The server has searched what was too small to be sent.
  const whole = shown.trimmed && atRoot && !wholeMatch.loading.value ? wholeMatch.data.value : null;
  const samples = whole?.samples ?? found.samples;
  const share = whole?.share ?? found.afterShare;
  const both = shown.diff !== null;
  // A name is searched for, and not one module's function: its namesakes are found with it.
  const isNamed = patternName(fields.match.value) !== fields.match.value && found.frames > 1;
  return (
    <span class="found" role="status" data-testid="found">
      {samples === 0 && found.framesInAll === 0 ? (
        "no frame matches"
      ) : (
        <>
          <b>{both ? `${percent(found.baseShare)} → ${percent(share)}` : percent(share)}</b>
          {found.callers !== null ? " of the callees" : atRoot ? "" : " of the zoomed frame"} ·{" "}
          {both && `${count(found.baseSamples)} → `}
          {amount(samples)} in {plural(found.frames, "frame")}
          {isNamed && " so named, of any module"}
          {found.callers !== null && (
            <>
              {" · "}
              <b>
                {both
                  ? `${percent(found.callers.baseShare)} → ${percent(found.callers.afterShare)}`
                  : percent(found.callers.afterShare)}
              </b>{" "}
              of the callers
            </>
          )}
          <button type="button" class="button tiny" aria-label="Previous match" onClick={() => jump(-1)}>
            ‹
          </button>
          <button type="button" class="button tiny" aria-label="Next match" onClick={() => jump(1)}>
            ›
          </button>
        </>
      )}
      {shown.trimmed && whole === null && (
        <span class="dim" title="Frames below a millionth of the window are folded and not searched.">
          {" "}
          (at least)
        </span>
      )}
    </span>
  );
}

function ColourChoice() {
  const { colour } = page.value;
  const isDiff = tree.value.tree?.diff !== null;
  return (
    <Choice
      label="colour"
      id="colour"
      value={colour}
      options={[
        ["", isDiff ? "difference" : "kind"],
        ...(isDiff ? [["kind", "kind"] as const] : []),
        ["module", "module"],
      ]}
      onChoose={(chosen) => navigate({ colour: chosen })}
    />
  );
}

const LEGEND_MODULES = 8;

function ModuleLegend() {
  const shown = upright.value;
  const modules = useMemo(() => (shown === null ? [] : modulesOf(shown).slice(0, LEGEND_MODULES)), [shown]);
  return (
    <ul class="legend" aria-label="Colours">
      {modules.map(({ module, self }) => (
        <li key={module} title={`${amount(self)} in itself`}>
          <i class="swatch" style={{ background: modulePaint("native", module, theme.value).fill }} />
          {module || "no module"}
        </li>
      ))}
    </ul>
  );
}

function KindLegend() {
  return (
    <ul class="legend" aria-label="Colours">
      {KINDS.map((kind) => (
        <li key={kind}>
          <i class="swatch" style={{ background: kindSwatch(kind, theme.value) }} />
          {kind === "jit" ? "JIT" : kind}
        </li>
      ))}
    </ul>
  );
}

const LEGEND: readonly [Change, number][] = [
  ["shrank", 1],
  ["shrank", 0.3],
  ["same", 0],
  ["grew", 0.3],
  ["grew", 1],
];

function ChangeLegend() {
  // What a change is called in time needs no more words than the change itself.
  const word = (change: Change) => (sideNames.value.inTurn ? change : changeWords(sideNames.value, change));
  return (
    <ul class="legend" aria-label="Colours">
      <li class="ramp">
        <span>▼ {word("shrank")}</span>
        {LEGEND.map(([change, strength]) => (
          <i
            key={`${change}${strength}`}
            class="swatch"
            title={changeWords(sideNames.value, change)}
            style={{ background: diffPaint(change, strength, theme.value).fill }}
          />
        ))}
        <span>{word("grew")} ▲</span>
      </li>
      <li title="Grey: the difference is within what chance explains.">grey: not shown to differ</li>
      <li>
        {MARK.new} {word("new")}
      </li>
      <li>
        {MARK.gone} {word("gone")}
      </li>
    </ul>
  );
}
