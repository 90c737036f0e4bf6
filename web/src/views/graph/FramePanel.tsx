/** All that is known of the selected frame: its samples, since when, who calls it, what it calls, where it stands. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { kindOf, kindWord } from "../../logic/colour.ts";
import { sideText } from "../../logic/compare/sideNames.ts";
import { coresOf, secondsOf, type WindowMeasure } from "../../logic/graph/measure.ts";
import { firstSeen } from "../../logic/series/firstSeen.ts";
import { sparkPath } from "../../logic/series/spark.ts";
import { stackOf } from "../../logic/series/stack.ts";
import { count, duration, percent, shareOf } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { rateShort, timeHead } from "../../logic/text/unit.ts";
import { wholeText } from "../../logic/text/whole.ts";
import { clock } from "../../logic/time/time.ts";
import { callersAndCallees, type CallersAndCallees as Found, type Neighbour } from "../../logic/tree/callers.ts";
import { largestOf } from "../../logic/tree/functions.ts";
import { sourceText } from "../../logic/tree/places.ts";
import { isNoFunction, titleOf } from "../../logic/tree/rows.ts";
import { frameName, kindName, moduleName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { navigate, page } from "../../state/address/page.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { linkOf } from "../../state/moments/sources.ts";
import { framePlaces, frameSeries, hasPlace } from "../../state/screen/frame.ts";
import { select } from "../../state/screen/selection.ts";
import { sent, upright } from "../../state/screen/tree.ts";
import { amountIn, amountTitle, bothFigures, counted, historyLevel, rateTitle } from "../../state/screen/units.ts";
import { openDialog } from "../bar/Help.tsx";
import { BothSides } from "../flame/Tooltip.tsx";
import { VersionHistory } from "../frame/VersionHistory.tsx";
import { Check } from "../ui/Check.tsx";
import { Segments } from "../ui/Choice.tsx";
import { copyText } from "../ui/clipboard.ts";
import { frameActions } from "./actions.ts";

interface Props {
  tree: Tree;
  node: number;
  focus: number;
  measure: WindowMeasure;
}

const SPARK = { width: 260, height: 54 };
const MOST_LISTED = 8;
const MOST_PLACES = 4;
const MOST_SOURCES = 4;
const NAME_ROOM = 40;
/** With a module beside it. */
const SHORT_ROOM = 20;

export function FramePanel({ tree, node, focus, measure }: Props) {
  const isFunction = !isNoFunction(kindName(tree, node));
  return (
    <section class="frame-panel" aria-label="Selected frame" data-testid="frame-panel">
      <div class="frame-head">
        <b class="frame-name" dir="auto">
          {wholeText(titleOf(tree, node))}
        </b>
        <CopyButton text={frameName(tree, node)} />
        <span class="spring" />
        <button type="button" class="button icon" aria-label="Close" onClick={() => select(null)}>
          ✕
        </button>
      </div>
      <div class="frame-parts">
        <div>
          <Figures tree={tree} node={node} focus={focus} measure={measure} />
          <div class="frame-actions">
            {frameActions(tree, node).map((action) => (
              <button key={action.key} type="button" class="button tiny" title={action.hint} onClick={action.run}>
                <bdi>{action.label}</bdi>
              </button>
            ))}
          </div>
        </div>
        {isFunction && <FirstSeen tree={tree} node={node} />}
        {isFunction && <CallersAndCallees tree={tree} node={node} />}
        {isFunction && <Places tree={tree} node={node} />}
      </div>
    </section>
  );
}

function CopyButton({ text }: { text: string }) {
  const [said, setSaid] = useState({ text: "", word: "Copy" });
  return (
    <button
      type="button"
      class="button tiny"
      data-testid="copy-frame"
      onClick={() => void copyText(text).then((done) => setSaid({ text, word: done ? "Copied" : "Not allowed" }))}
    >
      {said.text === text ? said.word : "Copy"}
    </button>
  );
}

const part = (value: number, whole: number) => (whole > 0 ? percent(shareOf(value, whole)) : "–");

interface PartsProps extends Omit<Props, "measure"> {
  samples: number;
  whole: number;
  /** Samples of each frame, of the same side. */
  of: ArrayLike<number>;
}

/** What part of others so many samples are, under the heads of `PartHeads`. */
function Parts({ samples, whole, of, tree, node, focus }: PartsProps) {
  const parent = Math.max(ROOT, tree.parent[node] as number);
  return (
    <>
      <td>{part(samples, whole)}</td>
      <td>{part(samples, of[parent] as number)}</td>
      {focus !== ROOT && <td>{part(samples, of[focus] as number)}</td>}
    </>
  );
}

function PartHeads({ tree, focus }: Pick<Props, "tree" | "focus">) {
  return (
    <>
      <th scope="col">of total</th>
      <th scope="col">of {tree.shape === "upright" ? "caller" : "parent"}</th>
      {focus !== ROOT && <th scope="col">of zoomed</th>}
    </>
  );
}

function Figures({ tree, node, focus, measure }: Props) {
  const all = upright.value;
  const whole = useMemo(
    () => (all === null || isNoFunction(kindName(tree, node)) ? null : callersAndCalleesIn(all, tree, node)),
    [all, tree, node],
  );
  if (tree.diff !== null)
    return (
      <>
        <BothSides tree={tree} node={node} measure={measure} />
        <Shares tree={tree} node={node} focus={focus} base={tree.diff.baseTotal} samples={measure.samples} />
      </>
    );
  const unit = counted.value;
  const row = (label: string, hint: string, samples: number, everywhere = false) => (
    <tr>
      <th scope="row" title={hint}>
        {label}
      </th>
      {unit.name !== "nanoseconds" && <td>{unit.isTime ? count(samples) : amountIn(samples)}</td>}
      {unit.isTime && <td>{duration(secondsOf(samples, measure))}</td>}
      <td>{rateShort(coresOf(samples, measure), unit)}</td>
      {/* Frames elsewhere are no part of this one's caller. */}
      {everywhere ? (
        <td>{part(samples, measure.samples)}</td>
      ) : (
        <Parts samples={samples} whole={measure.samples} of={tree.total} tree={tree} node={node} focus={focus} />
      )}
    </tr>
  );
  return (
    <table>
      <thead>
        <tr>
          <td />
          {unit.name !== "nanoseconds" && <th scope="col">{amountTitle()}</th>}
          {unit.isTime && <th scope="col">{timeHead(unit)}</th>}
          <th scope="col">{rateTitle()}</th>
          <PartHeads tree={tree} focus={focus} />
        </tr>
      </thead>
      <tbody>
        {row("total", "This frame and what it calls here", tree.total[node] as number)}
        {tree.shape === "upright" && row("self", "This frame itself", tree.self[node] as number)}
        {whole !== null && row("function", "All frames of this function; a recursion counts once", whole.total, true)}
        {whole !== null && row("function self", "All frames of this function themselves", whole.self, true)}
      </tbody>
    </table>
  );
}

interface SharesProps extends Omit<Props, "measure"> {
  base: ArrayLike<number>;
  /** Of window B, whatever transforms leave of it. */
  samples: number;
}

/** What part of each side a frame of a comparison is. */
function Shares({ tree, node, focus, base, samples }: SharesProps) {
  const row = (side: string, of: ArrayLike<number>, whole: number) => (
    <tr>
      <th scope="row">{side}</th>
      <Parts samples={of[node] as number} whole={whole} of={of} tree={tree} node={node} focus={focus} />
    </tr>
  );
  return (
    <table data-testid="frame-shares">
      <thead>
        <tr>
          <td />
          <PartHeads tree={tree} focus={focus} />
        </tr>
      </thead>
      <tbody>
        {row(sideText(sideNames.value, 0), base, sent.value.tree?.diff?.baseTotal[ROOT] ?? 0)}
        {row(sideText(sideNames.value, 1), tree.total, samples)}
      </tbody>
    </table>
  );
}

/** Callers and callees in the tree as it was taken, wherever the frame stands in the one on the screen. */
function callersAndCalleesIn(all: Tree, tree: Tree, node: number): Found | null {
  if (all === tree) return callersAndCallees(all, node);
  const key = { name: frameName(tree, node), module: moduleName(tree, node), kind: kindName(tree, node) };
  const there = largestOf(all, key);
  return there === null ? null : callersAndCallees(all, there);
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Of what the history is: frames of the same name in other modules are others. */
function HistoryOf({ tree, node }: Pick<Props, "tree" | "node">) {
  const isPlace = page.value.history === "place" && hasPlace.value;
  const module = moduleName(tree, node);
  return (
    <p class="dim" data-testid="history-of">
      <Segments
        name="History of"
        value={isPlace ? "place" : ""}
        options={[
          ["", "function", `All frames of this function${module === "" ? "" : ` in ${module}`}, wherever they stand`],
          ...(hasPlace.value
            ? [["place", "this place", "This frame below its callers here, and nowhere else"] as const]
            : []),
        ]}
        onChoose={(history) => navigate({ history })}
      />{" "}
      <Check
        checked={page.value.split === "version"}
        onToggle={() => navigate({ split: page.value.split === "" ? "version" : "" })}
        title="A line for each version, over all that the server keeps"
        id="split-version"
      >
        by version
      </Check>
    </p>
  );
}

function FirstSeen({ tree, node }: Pick<Props, "tree" | "node">) {
  if (page.value.split !== "version") return <Course tree={tree} node={node} />;
  return (
    <Part title="History">
      <HistoryOf tree={tree} node={node} />
      <VersionHistory />
    </Part>
  );
}

function Course({ tree, node }: Pick<Props, "tree" | "node">) {
  const { data, error } = frameSeries;
  const answer = data.value;
  const stack = useMemo(() => (answer === null ? null : stackOf(answer)), [answer]);
  if (answer === null || stack === null)
    return (
      <Part title="History">
        <HistoryOf tree={tree} node={node} />
        <p class="dim">{error.value?.message ?? "…"}</p>
      </Part>
    );
  const { width, height } = SPARK;
  return (
    <Part title="History">
      <HistoryOf tree={tree} node={node} />
      <svg
        class="spark frame-history"
        width={width}
        height={height}
        viewBox={`0 -1 ${width} ${height + 2}`}
        aria-hidden="true"
      >
        <path d={sparkPath(stack.total, width, height)} />
      </svg>
      <p class="frame-history-ends dim">
        <span>{clock(answer.from)}</span>
        <span>{clock(answer.until)}</span>
      </p>
      <p data-testid="frame-since">{firstSeenText(firstSeen(stack))}</p>
    </Part>
  );
}

function firstSeenText({ first, isEarlier, peak, peakAt }: ReturnType<typeof firstSeen>): string {
  if (first === null) return "no samples in this range";
  const begin = isEarlier ? "there as long as this range was watched" : `first seen ${clock(first)}`;
  return `${begin}; at most ${historyLevel(peak)}, ${clock(peakAt)}`;
}

function CallersAndCallees({ tree, node }: { tree: Tree; node: number }) {
  const all = upright.value;
  const found = useMemo(() => (all === null ? null : callersAndCalleesIn(all, tree, node)), [all, tree, node]);
  if (found === null) return null;
  const module = moduleName(tree, node);
  const list = (title: string, rows: Neighbour[], none: string) => (
    <Part title={title}>
      {rows.length === 0 && <p class="dim">{none}</p>}
      <ol class="callers">
        {rows.slice(0, MOST_LISTED).map((row) => (
          <li key={`${row.name} ${row.module} ${row.kind}`}>
            <button
              type="button"
              title={`${row.name}\n${row.module}`}
              onClick={() => {
                const there = largestOf(tree, row);
                if (there !== null) select(there);
              }}
            >
              <bdi>{fitName(row.name, row.module === module ? NAME_ROOM : SHORT_ROOM)}</bdi>
              {/* Programs begin alike: the module is told where it is another one. */}
              {row.module !== module && <small class="dim"> {row.module}</small>}
            </button>
            <span class="dim">
              {tree.diff === null ? part(row.samples, found.total) : bothFigures(row.baseSamples, row.samples)}
            </span>
          </li>
        ))}
      </ol>
      {rows.length > MOST_LISTED && <p class="dim">{rows.length - MOST_LISTED} more: sandwich shows all</p>}
    </Part>
  );
  return (
    <>
      {list("Callers", found.callers, "nothing: stacks begin here")}
      {list("Callees", found.callees, "nothing")}
    </>
  );
}

function SourceLink({ href }: { href: string | null }) {
  if (href === null) return null;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer" title={href}>
      Open source
    </a>
  );
}

function Places({ tree, node }: { tree: Tree; node: number }) {
  const places = framePlaces.value?.places ?? [];
  const module = moduleName(tree, node);
  const inlined = tree.inlined[node] === 1 ? ", inlined" : "";
  return (
    <Part title="Where">
      <p>
        {kindWord(kindOf(kindName(tree, node), false))}
        {inlined} <bdi>{module}</bdi>
      </p>
      {places.slice(0, MOST_PLACES).map(({ module: path, buildId, sources }) => (
        <ul key={`${path} ${buildId}`} class="place">
          {path !== module && <li dir="auto">{path}</li>}
          {buildId !== "" && <li class="dim">build id {buildId}</li>}
          {sources.slice(0, MOST_SOURCES).map((source) => (
            <li key={source.file} dir="auto">
              {sourceText(source)} <SourceLink href={linkOf(path, source)} />
            </li>
          ))}
          {sources.length > MOST_SOURCES && <li class="dim">{sources.length - MOST_SOURCES} more files</li>}
        </ul>
      ))}
      {places.some(({ sources }) => sources.length > 0) && (
        <button type="button" class="button tiny" onClick={() => openDialog("sources")}>
          Source links …
        </button>
      )}
      {places.length > MOST_PLACES && <p class="dim">{places.length - MOST_PLACES} more files or builds</p>}
    </Part>
  );
}
