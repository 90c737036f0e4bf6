/**
 * What changed, causes first: the lowest frames that explain it, each a row that opens to its sentence and to the
 * callers that differ by the same amount; then the functions by what they take themselves.
 */
import { useState } from "preact/hooks";
import type { DiffTopRow, TopAnswer } from "../../api/types.ts";
import { MARK } from "../../logic/colour.ts";
import { cpuSecondsOf, judgedText } from "../../logic/compare/bothSides.ts";
import { type Cause, chainNames, changedRows } from "../../logic/compare/causes.ts";
import { changeText, fromTo } from "../../logic/compare/changeText.ts";
import { figuresOf, nameOf, remarkOf, type Telling } from "../../logic/compare/findings.ts";
import { sumsOfSides } from "../../logic/compare/norm.ts";
import { bothText, changeWords, type SideNames } from "../../logic/compare/sideNames.ts";
import { coresOfSides } from "../../logic/graph/measure.ts";
import { isWanted } from "../../logic/table/diffRows.ts";
import { duration, plural } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { rangeText } from "../../logic/time/time.ts";
import type { ParsedDiff } from "../../logic/tree/answer.ts";
import { focusOf } from "../../logic/tree/focus.ts";
import { rowKey } from "../../logic/tree/frameKey.ts";
import { largestOf } from "../../logic/tree/functions.ts";
import type { Tree } from "../../logic/tree/tree.ts";
import { navigate, page } from "../../state/address/page.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { selfDiff } from "../../state/answers/judged.ts";
import { present } from "../../state/question/question.ts";
import { changes } from "../../state/screen/findings.ts";
import { select } from "../../state/screen/selection.ts";
import { sent, tree } from "../../state/screen/tree.ts";
import { counted } from "../../state/screen/units.ts";
import { PHONE, useMedia } from "../ui/hooks.ts";
import { nameRoom } from "../ui/VirtualTable.tsx";

/** Beyond these one asks for more. */
const FIRST = 5;
const MOST_FUNCTIONS = 12;

function tellingOf(answer: ParsedDiff): Telling {
  const now = present.value;
  const [, baseUntil] = rangeText(answer.base, now).split(" – ") as [string, string];
  const [from] = rangeText(answer.comparison, now).split(" – ") as [string, string];
  const { normalize, measure } = answer;
  return {
    normalize,
    unit: counted.value,
    measure,
    sides: sideNames.value,
    sideCores: coresOfSides(answer),
    choice: page.value.unit,
    sums: sumsOfSides(answer),
    windows: { baseUntil, from },
  };
}

export function Causes({ answer }: { answer: ParsedDiff }) {
  const shown = sent.value.tree;
  const { only, all } = page.value;
  const found = changes.value.filter(({ finding }) => isWanted(finding.change, only));
  const telling = tellingOf(answer);
  const rest = found.length - FIRST;
  const hasBoth = answer.base.samples > 0 && answer.comparison.samples > 0;
  const { inTurn } = sideNames.value;
  return (
    <section class="changes" aria-label={inTurn ? "What changed" : "What differs"}>
      <h2>What explains the {inTurn ? "change" : "difference"}</h2>
      {shown === null || found.length === 0 ? (
        <p class="dim">{hasBoth ? "No significant change in any frame." : "There is nothing to compare with."}</p>
      ) : (
        <>
          <p class="judged dim">The lowest frames that have it: their callers changed because they call them.</p>
          <ol data-testid="changes">
            {(all ? found : found.slice(0, FIRST)).map((cause, i) => (
              <CauseRow key={cause.finding.node} tree={shown} cause={cause} telling={telling} isFirst={i === 0} />
            ))}
          </ol>
        </>
      )}
      {rest > 0 && (
        <button type="button" class="button" aria-expanded={all} onClick={() => navigate({ all: !all })}>
          {all ? "Only the largest" : `${plural(rest, "smaller one")} more`}
        </button>
      )}
      {hasBoth && <OwnChanges telling={telling} />}
    </section>
  );
}

/**
 * Scrolls the graph into sight where the page is so narrow that it stands above, and again where what comes into the
 * page moves it out, until the person does something.
 */
function showGraph(): void {
  const graph = () => document.querySelector(".flame");
  const show = () => graph()?.scrollIntoView({ block: "nearest" });
  const arrivals = new MutationObserver(show);
  // What has come changes the graph's own height too, after it is there.
  const sizes = new ResizeObserver(show);
  const shown = graph();
  show();
  arrivals.observe(document, { childList: true, subtree: true });
  if (shown !== null) sizes.observe(shown);
  const stop = () => {
    arrivals.disconnect();
    sizes.disconnect();
  };
  for (const kind of ["wheel", "pointerdown", "keydown"]) addEventListener(kind, stop, { capture: true, once: true });
}

function CauseRow({
  tree: shown,
  cause,
  telling,
  isFirst,
}: {
  tree: Tree;
  cause: Cause;
  telling: Telling;
  isFirst: boolean;
}) {
  const { finding, chain } = cause;
  const [open, setOpen] = useState(isFirst);
  const isPhone = useMedia(PHONE);
  const name = nameOf(shown, finding);
  const zoom = (node: number) => {
    // What was done to the tree may have left nothing of the frame.
    navigate({ focus: focusOf(shown, node), transform: "", tab: "causes", ...(isPhone ? { pane: "both" } : {}) });
    showGraph();
  };
  return (
    <li>
      <div class="cause">
        <button
          type="button"
          class="cause-open"
          aria-expanded={open}
          aria-label={`${name}: how it is told`}
          onClick={() => setOpen(!open)}
        >
          {open ? "▾" : "▸"}
        </button>
        <button type="button" class="cause-name" title={`Zoom to ${name}`} onClick={() => zoom(finding.node)}>
          <i class={`mark ${finding.change}`} aria-hidden="true">
            {MARK[finding.change]}
          </i>
          <span class="visually-hidden">{changeWords(telling.sides, finding.change)}: </span>
          <code>{fitName(name, nameRoom("alone"))}</code>
          {finding.where !== "" && <span> in {finding.where}</span>}
          {telling.measure === "self" ? ", its own time: " : ": "}
          <b>{figuresOf(finding, telling)}</b>
          {open && <span class="dim">; {remarkOf(finding, telling)}</span>}
        </button>
      </div>
      {open && chain.length > 1 && (
        <ol class="chain" aria-label="Callers that changed because they call it, and the frame itself">
          {chainNames(shown, cause).map((caller, i) => {
            const node = chain[i] as number;
            return (
              <li key={node}>
                <button type="button" title={`Zoom to ${caller}`} onClick={() => zoom(node)}>
                  <bdi>{fitName(caller, nameRoom("beside"))}</bdi>
                </button>
                <span class={`delta-text ${finding.change}`}>{changeText(shown.diff?.delta[node] ?? 0, telling)}</span>
              </li>
            );
          })}
        </ol>
      )}
    </li>
  );
}

/** `0.4 s → 30 s`: CPU time of both sides; nothing where the type is no time. */
function timesText(row: DiffTopRow, answer: TopAnswer<DiffTopRow>, sides: SideNames): string {
  const { before, after } = cpuSecondsOf(row, answer);
  if (before === null || after === null) return "";
  return bothText(duration(before), duration(after), sides);
}

/** Functions by what they take themselves, judged as a table of their own. */
function OwnChanges({ telling }: { telling: Telling }) {
  const answer: TopAnswer<DiffTopRow> | null = selfDiff.data.value;
  const drawn = tree.value.tree;
  if (answer === null) return <p class="dim">{selfDiff.error.value?.message ?? "…"}</p>;
  // Where time was chosen, it is told once.
  const hasLevels = telling.choice !== "time" || answer.is_time === false;
  const rows = changedRows(answer.rows).filter(({ state }) => isWanted(state, page.value.only));
  return (
    <>
      <h2>Functions by change of self</h2>
      <p class="judged dim">Self: samples in the function itself, without what it calls. {judgedText(answer)}</p>
      <ol class="own" data-testid="own-changes">
        {rows.slice(0, MOST_FUNCTIONS).map((row) => (
          <li key={`${row.name} ${row.module} ${row.kind} ${row.language}`}>
            <button
              type="button"
              title={`Select ${row.name}`}
              onClick={() => {
                if (drawn === null) return;
                select(largestOf(drawn, rowKey(row)), { tab: "causes" });
              }}
            >
              <i class={`mark ${row.state}`} aria-hidden="true">
                {MARK[row.state as keyof typeof MARK]}
              </i>
              <bdi>{fitName(row.name, nameRoom("beside"))}</bdi> <small class="dim">{row.module}</small>
            </button>
            <span class="dim own-time">{timesText(row, answer, telling.sides)}</span>
            {hasLevels && (
              <span class="dim own-level">{fromTo(row.base_norm, row.norm, telling, telling.sides.inTurn)}</span>
            )}
            <b class={`delta-text ${row.state}`}>{changeText(row.delta, telling)}</b>
          </li>
        ))}
      </ol>
      {rows.length > MOST_FUNCTIONS && (
        <button
          type="button"
          class="button"
          // By self, too, where nobody asked for totals; the graph stays as it is.
          onClick={() => navigate({ tab: "functions", ...(page.value.measure === "total" ? { measure: "self" } : {}) })}
        >
          {plural(rows.length - MOST_FUNCTIONS, "function")} more
        </button>
      )}
    </>
  );
}
