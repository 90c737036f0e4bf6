/**
 * What a comparison found: the verdict, how much of it chance would find too, what speaks against it, and what changed
 * in sentences.
 */
import type { DiffAnswer } from "../../api/types.ts";
import { headline } from "../../logic/compare/causes.ts";
import { caveatsOf, pairFaults } from "../../logic/compare/caveats.ts";
import { fromTo } from "../../logic/compare/changeText.ts";
import { sumsOfSides } from "../../logic/compare/norm.ts";
import { controlText, verdictOf } from "../../logic/compare/verdict.ts";
import { levelText, percent } from "../../logic/text/format.ts";
import { unitOf } from "../../logic/text/unit.ts";
import { halves, pairTexts } from "../../logic/time/windows.ts";
import type { ParsedDiff } from "../../logic/tree/answer.ts";
import { changeOf, ROOT } from "../../logic/tree/tree.ts";
import { navigate, type PageState, page } from "../../state/address/page.ts";
import { diff, diffTop, sideNames } from "../../state/answers/compare.ts";
import { threadDiff } from "../../state/answers/judged.ts";
import { changes, control, watchers } from "../../state/screen/findings.ts";
import { sent } from "../../state/screen/tree.ts";
import { counted } from "../../state/screen/units.ts";
import { DataChip } from "../chart/DataChip.tsx";
import { Quality } from "../lazyViews.tsx";
import { Go } from "../ui/Go.tsx";
import { PHONE, useMedia } from "../ui/hooks.ts";
import { PairUnit } from "./PairUnit.tsx";

/** What a side takes: cores, or its own unit a second. */
export const levelOf = (side: DiffAnswer["base"]) => side.cores ?? side.rate ?? 0;

export function Verdict({ answer }: { answer: ParsedDiff }) {
  const { base, comparison } = answer;
  const causes = changes.value;
  const functions = diffTop.data.value?.rows.filter(({ state }) => state !== "same").length ?? 0;
  const text = verdictOf(answer, functions, causes.length);
  const { unit } = page.value;
  // There it stands among the tools of the graph.
  const isPhone = useMedia(PHONE);
  const told = {
    normalize: "rate",
    unit: counted.value,
    // Of all that a side has, its share is all.
    choice: unit === "share" ? "cores" : unit,
    sums: sumsOfSides({ ...answer, normalize: "rate" }),
  } as const;
  const head = sent.value.tree === null ? "" : headline(sent.value.tree, causes, threadDiff.data.value?.rows ?? []);
  return (
    <div class="verdict" aria-busy={diff.stale.value}>
      <div class="verdict-said" role="status" data-testid="verdict">
        <b class={answer.tree === null ? "same" : changeOf(answer.tree, ROOT)}>
          {fromTo(levelOf(base), levelOf(comparison), told, sideNames.value.inTurn)}
        </b>{" "}
        <span
          title={
            `${text}. Of the coloured frames, ${percent(answer.false_discovery_rate)} are expected to be there by ` +
            `chance. Samples come in bursts: their counts scatter ${answer.dispersion.toFixed(1)} times as much as ` +
            "independent ones, which the test takes into account."
          }
        >
          {text}
        </span>
        {head !== "" && (
          <>
            : <bdi title={head}>{head}</bdi>
          </>
        )}
      </div>
      <span class="spring" />
      {!isPhone && <PairUnit />}
      <DataChip faults={pairFaults(answer, watchers.data.value)} />
    </div>
  );
}

/** What both sides are made of, what speaks against comparing them, and how much chance would find. */
export function DataCard({ answer }: { answer: ParsedDiff }) {
  const { base, comparison } = answer;
  return (
    <div class="card data" data-testid="data" aria-busy={diff.stale.value}>
      <Caveats answer={answer} />
      <Quality name="A" answer={base} unit={unitOf({ unit: "samples", ...base, type: answer.type })} />
      <Quality name="B" answer={comparison} unit={unitOf({ unit: "samples", ...comparison, type: answer.type })} />
      <Control answer={answer} />
    </div>
  );
}

/** A/A: nothing changed by construction, unless A itself is unstable. */
function Control({ answer }: { answer: ParsedDiff }) {
  const { data, error, loading } = control;
  const found = data.value;
  if (answer.base.samples === 0) return null;
  const change = {
    view: "compare" as const,
    ...pairTexts(halves(answer.base)),
    query: page.value.baseQuery || page.value.query,
    baseQuery: "",
    normalize: answer.normalize,
    chartFrom: "",
    chartUntil: "",
    focus: "",
  };
  return (
    <div
      class="control"
      data-testid="control"
      title={
        "The two halves of A, judged like A and B: how many of their frames would be coloured. What differs is noise, " +
        "or the baseline is unstable."
      }
    >
      {found === null || loading.value ? (
        <span class="dim">{error.value === null ? "A/A check …" : `A/A check not made: ${error.value.message}`}</span>
      ) : (
        <>
          <span class={found.significant > 0 ? "warn-text" : "dim"}>
            {found.significant > 0 && <span aria-hidden="true">! </span>}
            {controlText(found)}
          </span>{" "}
          <Go hidden={Boolean(answer.base.except)} change={change}>
            show
          </Go>
        </>
      )}
    </div>
  );
}

function Caveats({ answer }: { answer: ParsedDiff }) {
  const caveats = caveatsOf(answer, watchers.data.value);
  if (caveats.length === 0) return null;
  return (
    <ul class="caveats" aria-label="What speaks against this comparison" data-testid="caveats">
      {caveats.map(({ what, so, isNote }) => (
        <li key={what}>
          <span class={isNote ? "" : "warn-text"}>
            {!isNote && <span aria-hidden="true">! </span>}
            {what}
          </span>
          <span class="dim">: {so}.</span>
        </li>
      ))}
    </ul>
  );
}

export function ConfidenceSlider({ level }: { level: PageState["confidence"] }) {
  const at = LEVELS.indexOf(level);
  const text = levelText(Number(level || "0.95"));
  return (
    <label
      class="inline"
      title={
        `Intervals hold the true change in ${text} of cases; ` +
        "of what is coloured, at most the rest is there by chance."
      }
    >
      <span class="visually-hidden">Confidence</span>
      <input
        type="range"
        min={0}
        max={LEVELS.length - 1}
        step={1}
        value={at}
        aria-valuetext={text}
        data-testid="confidence"
        onInput={(event) => navigate({ confidence: LEVELS[Number(event.currentTarget.value)] ?? "" }, "confidence")}
      />
      <output>{text} CI</output>
    </label>
  );
}

/** From bold to cautious; the empty one is the server's default, 95 %. */
const LEVELS: readonly PageState["confidence"][] = ["0.8", "0.9", "", "0.99", "0.999"];
