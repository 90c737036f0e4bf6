/**
 * What a comparison found: the verdict, how much of it chance would find too, what speaks against it, and what changed
 * in sentences.
 */
import type { DiffAnswer } from "../../api/types.ts";
import { MARK } from "../../logic/colour.ts";
import { caveatsOf } from "../../logic/compare/caveats.ts";
import { type Finding, figuresOf, nameOf, remarkOf, type Telling } from "../../logic/compare/findings.ts";
import { changeWords } from "../../logic/compare/sideNames.ts";
import { controlText, verdictOf } from "../../logic/compare/verdict.ts";
import { isWanted } from "../../logic/table/diffRows.ts";
import { levelText, percent, plural } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { rateShort, rateText, unitOf } from "../../logic/text/unit.ts";
import { rangeText } from "../../logic/time/time.ts";
import { halves } from "../../logic/time/windows.ts";
import type { ParsedDiff } from "../../logic/tree/answer.ts";
import { focusOf } from "../../logic/tree/focus.ts";
import { changeOf, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { navigate, type PageState, page } from "../../state/address/page.ts";
import { diffTop, sideNames } from "../../state/answers/compare.ts";
import { present } from "../../state/question/question.ts";
import { changes, control, watchers } from "../../state/screen/findings.ts";
import { sent } from "../../state/screen/tree.ts";
import { counted } from "../../state/screen/units.ts";
import { Quality } from "../chart/Quality.tsx";
import { Go } from "../ui/Go.tsx";
import { nameRoom } from "../ui/VirtualTable.tsx";

const rateOf = (side: DiffAnswer["base"]) => rateShort(side.cores ?? side.rate ?? 0, counted.value);

export function Verdict({ answer }: { answer: ParsedDiff }) {
  const { base, comparison } = answer;
  return (
    <div class="verdict card">
      <div role="status" data-testid="verdict">
        <b class={answer.tree === null ? "same" : changeOf(answer.tree, ROOT)}>
          {rateOf(base)} → {rateText(comparison.cores ?? comparison.rate ?? 0, counted.value)}
        </b>
        <div
          title={
            `Of the coloured frames, ${percent(answer.false_discovery_rate)} are expected to be there by chance. ` +
            `Samples come in bursts: their counts scatter ${answer.dispersion.toFixed(1)} times as much as ` +
            "independent ones, which the test takes into account."
          }
        >
          {verdictOf(answer, diffTop.data.value?.rows.filter(({ state }) => state !== "same").length ?? 0)}
        </div>
        <Control answer={answer} />
      </div>
      <div>
        <Quality name="A" {...side(base)} />
        <Quality name="B" {...side(comparison)} />
      </div>
    </div>
  );
}

function side(of: DiffAnswer["base"]) {
  const { samples, cores: level, cpu_seconds: cpuSeconds, periods, exposure, quality } = of;
  const unit = unitOf({ unit: "samples", ...of });
  return { window: of, samples, rate: level ?? of.rate ?? 0, cpuSeconds, unit, periods, exposure, quality };
}

/** A/A: nothing changed by construction, unless A itself is not steady. */
function Control({ answer }: { answer: ParsedDiff }) {
  const { data, error, loading } = control;
  const found = data.value;
  if (answer.base.samples === 0) return null;
  const { base, comparison } = halves(answer.base);
  const change = {
    view: "compare" as const,
    baseFrom: String(base.from),
    baseUntil: String(base.until),
    from: String(comparison.from),
    until: String(comparison.until),
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
        "The two halves of A, judged like A and B. What differs between them is noise, " +
        "or A is not as steady as it should be to compare with."
      }
    >
      {found === null || loading.value ? (
        <span class="dim">{error.value === null ? "A/A control …" : `A/A control failed: ${error.value.message}`}</span>
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

export function Caveats({ answer }: { answer: ParsedDiff }) {
  const caveats = caveatsOf(answer, watchers.data.value);
  if (caveats.length === 0) return null;
  return (
    <ul class="caveats card" aria-label="What speaks against this comparison" data-testid="caveats">
      {caveats.map(({ what, so }) => (
        <li key={what}>
          <span class="warn-text">
            <span aria-hidden="true">! </span>
            {what}
          </span>
          <span class="dim">: {so}.</span>
        </li>
      ))}
    </ul>
  );
}

/** Beyond these one asks for more. */
const FIRST = 5;

export function Changes({ answer }: { answer: ParsedDiff }) {
  const shown = sent.value.tree;
  const { only, all } = page.value;
  const found = changes.value.filter((finding) => isWanted(finding.change, only));
  if (shown === null || found.length === 0) return null;
  const now = present.value;
  const [, baseUntil] = rangeText(answer.base, now).split(" – ") as [string, string];
  const [from] = rangeText(answer.comparison, now).split(" – ") as [string, string];
  const { normalize, measure } = answer;
  const telling: Telling = {
    normalize,
    unit: counted.value,
    measure,
    sides: sideNames.value,
    windows: { baseUntil, from },
  };
  const title = sideNames.value.inTurn ? "What changed" : "What differs";
  const rest = found.length - FIRST;
  return (
    <section class="card changes" aria-label={title}>
      <h2>{title}</h2>
      <ol data-testid="changes">
        {(all ? found : found.slice(0, FIRST)).map((finding) => (
          <Sentence key={finding.node} tree={shown} finding={finding} telling={telling} />
        ))}
      </ol>
      {rest > 0 && (
        <button type="button" class="button" aria-expanded={all} onClick={() => navigate({ all: !all })}>
          {all ? "Only the largest" : `${plural(rest, "smaller one")} more`}
        </button>
      )}
    </section>
  );
}

function Sentence({ tree: shown, finding, telling }: { tree: Tree; finding: Finding; telling: Telling }) {
  const name = nameOf(shown, finding);
  return (
    <li>
      <button
        type="button"
        title={`Zoom to ${name}`}
        onClick={() => {
          // What was done to the tree may have left nothing of the frame.
          navigate({ focus: focusOf(shown, finding.node), transform: "" });
          // On a screen of usual height most of the graph lies below, and what says that it is zoomed makes it higher.
          showGraph();
        }}
      >
        <i class={`mark ${finding.change}`} aria-hidden="true">
          {MARK[finding.change]}
        </i>
        <span class="visually-hidden">{changeWords(telling.sides, finding.change)}: </span>
        <code>{fitName(name, nameRoom("alone"))}</code>
        {finding.where !== "" && <span> in {finding.where}</span>}
        {telling.measure === "self" ? ", its own time: " : ": "}
        <b>{figuresOf(finding, telling)}</b>
        <span class="dim">; {remarkOf(finding, telling)}</span>
      </button>
    </li>
  );
}

/**
 * Scrolls the graph into sight, and again where what comes into the page moves it out, until the person does something.
 */
function showGraph(): void {
  const show = () => document.querySelector(".graph")?.scrollIntoView({ block: "nearest" });
  const arrivals = new MutationObserver(show);
  show();
  arrivals.observe(document, { childList: true, subtree: true });
  for (const kind of ["wheel", "pointerdown", "keydown"])
    addEventListener(kind, () => arrivals.disconnect(), { capture: true, once: true });
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
      confidence{" "}
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
      <output>{text}</output>
    </label>
  );
}

/** From bold to cautious; the empty one is the server's default, 95 %. */
const LEVELS: readonly PageState["confidence"][] = ["0.8", "0.9", "", "0.99", "0.999"];
