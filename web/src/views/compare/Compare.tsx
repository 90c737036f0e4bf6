/** Two windows, or two selections: what changed, and what only looks as if it had. */
import { useMemo } from "preact/hooks";
import { otherSide, placesBefore, withLength } from "../../logic/compare/dragging.ts";
import { type ChangePoint, changePoints, changeText, largestChange } from "../../logic/series/changePoints.ts";
import { meanWithin } from "../../logic/series/stack.ts";
import { levelText } from "../../logic/text/format.ts";
import { isWait } from "../../logic/text/unit.ts";
import { clock, rangeText } from "../../logic/time/time.ts";
import { around, isSame, lengthOf, type Pair, pairTexts, type Window } from "../../logic/time/windows.ts";
import { isOpen, navigate, type PageState, page } from "../../state/address/page.ts";
import {
  baseline,
  compareSeries,
  compareStack,
  diff,
  isChosenHere,
  pair,
  sideNames,
} from "../../state/answers/compare.ts";
import { startJudged } from "../../state/answers/judged.ts";
import { selectorFaults } from "../../state/answers/selector.ts";
import { present } from "../../state/question/question.ts";
import { baseStack, startFindings } from "../../state/screen/findings.ts";
import { level, levelIn, levelTitle } from "../../state/screen/units.ts";
import { QueryBox } from "../bar/QueryBox.tsx";
import { ChartCard } from "../chart/ChartCard.tsx";
import { WindowPair } from "../chart/WindowPair.tsx";
import { Moments, WaitChips } from "../lazyViews.tsx";
import { Check } from "../ui/Check.tsx";
import { Choice } from "../ui/Choice.tsx";
import { FoldButton } from "../ui/Fold.tsx";
import { PHONE, useMedia } from "../ui/hooks.ts";
import { Menu } from "../ui/Menu.tsx";
import { ConfidenceSlider, levelOf, Verdict } from "./Changes.tsx";
import { CompareProfile } from "./CompareProfile.tsx";

/** For the heatmap, where two marks are compared. */
export { ChangedMost } from "./ChangedMost.tsx";
export { CompareProfile };

export function start(): void {
  startJudged();
  startFindings();
}

function pairChange(both: Pair, chart: Window | null): Partial<PageState> {
  return {
    ...pairTexts(both),
    chartFrom: chart === null ? "" : String(chart.from),
    chartUntil: chart === null ? "" : String(chart.until),
  };
}

function setPair(both: Pair, chart: Window | null, gesture = ""): void {
  navigate(pairChange(both, chart), gesture);
}

export function Compare() {
  return (
    <>
      <CompareChart />
      {isWait(page.value.type) && <WaitChips />}
      <Sides />
      <CompareProfile />
    </>
  );
}

function CompareChart() {
  const windows = pair.value;
  const stack = compareStack.value;
  const across = useMemo(() => (stack === null ? null : largestChange(changePoints(stack))), [stack]);
  return (
    <ChartCard
      series={compareSeries}
      stack={compareStack}
      beside={baseStack.value}
      saidBelow={diff.error.value}
      label={`${isWait(page.value.type) ? "Threads waiting" : "Cores"} over time with the two windows that are compared.`}
      tools={
        <>
          {page.value.baseQuery !== "" && (
            <span class="side base" title="A has a selector of its own: its sum is the line, the layers are B's">
              <span class="side-letter">A</span> as a line over B
            </span>
          )}
          <button
            type="button"
            class="button"
            title="Let the chart show both windows closely"
            onClick={() => setPair(windows, around(windows.base, windows.comparison))}
          >
            Show both windows
          </button>
          {across !== null && (
            <button
              type="button"
              class="button"
              data-testid="largest-change"
              title={`A until the chart's largest change, ${changeText(across, level, levelTitle())}, and B from there on, equally long`}
              onClick={() => setPair(across.pair, windows.chart)}
            >
              Align to change point
            </button>
          )}
        </>
      }
      onRange={(w) => navigate({ chartFrom: String(w.from), chartUntil: String(w.until) }, "wheel")}
      overlay={(plot, { onHover }) => (
        <WindowPair
          plot={plot}
          pair={windows}
          now={present.value}
          locked={page.value.lock}
          onHover={(moment) => onHover(moment === null ? null : { moment, height: Number.POSITIVE_INFINITY })}
          onChange={(changed, gesture) => setPair(changed, windows.chart, gesture)}
        />
      )}
    />
  );
}

/** The value of the choice that leaves side A to the page. */
const HERE = "here";
const NO_SIDE = "nothing to compare with";

const pointTitle = (point: ChangePoint) => `before ${changeText(point, level, levelTitle())}`;
const isSamePair = (a: Pair, b: Pair) => isSame(a.base, b.base) && isSame(a.comparison, b.comparison);

/** Where side A can lie: beside B, and before each change of the chart, B then behind it. */
function placesOf({ base, comparison }: Pair, points: readonly ChangePoint[]) {
  const places = placesBefore(comparison).map(([title, window]) => ({
    title,
    pair: { base: window, comparison },
    isPoint: false,
  }));
  const changes = points.flatMap((point) =>
    point.pair === null ? [] : [{ title: pointTitle(point), pair: point.pair, isPoint: true }],
  );
  // Of two names for the same windows, the change says more.
  return changes.some(({ pair: at }) => isSamePair(at, { base, comparison }))
    ? [...changes, ...places]
    : [...places, ...changes];
}

function Sides() {
  const windows = pair.value;
  const isPhone = useMedia(PHONE);
  const { baseQuery, query, normalize, measure, confidence, lock } = page.value;
  const answer = diff.data.value;
  const now = present.value;
  const set = (side: keyof Pair, window: Window) => {
    const other = otherSide(side);
    const follows = lock ? withLength(windows[other], lengthOf(window)) : windows[other];
    setPair({ ...windows, [other]: follows, [side]: window }, null);
  };
  const side = (name: keyof Pair, letter: string, at: 0 | 1) => {
    const window = windows[name];
    const word = sideNames.value.names[at];
    const stack = name === "base" && baseQuery !== "" ? baseStack.value : compareStack.value;
    // The answer's own, where it is there: steps of the chart that lie in the window in part say it less well.
    const told = answer !== null && isSame(answer[name], window) ? levelOf(answer[name]) : null;
    const mean = told ?? (stack === null ? null : meanWithin(stack, window));
    return (
      <div class={`side ${name}`}>
        <span class="side-letter">{letter}</span>
        <bdi class={isPhone ? "visually-hidden" : ""}>{word === letter ? "" : word}</bdi>
        <Menu
          label={isPhone ? clock(window.from) : rangeText(window, now)}
          name={`Choose window ${letter}`}
          onNear={Moments.preload}
        >
          {(close) => (
            <Moments
              window={window}
              onApply={(w) => {
                set(name, w);
                close();
              }}
            />
          )}
        </Menu>
        {mean !== null && !isPhone && (
          <span class="dim" aria-busy={diff.stale.value}>
            {levelIn(mean)}
          </span>
        )}
      </div>
    );
  };
  const points = useMemo(
    () => (compareStack.value === null ? [] : changePoints(compareStack.value)),
    [compareStack.value],
  );
  const options = placesOf(windows, points);
  const chosen = isChosenHere.value ? HERE : (options.find(({ pair: at }) => isSamePair(at, windows))?.title ?? "");
  const said = baseline.value !== null && (
    <span class="baseline dim" role="status" data-testid="baseline" title={baseline.value.said}>
      {baseline.value.said}
    </span>
  );
  const place = (
    <Choice
      label="Baseline"
      name="Place window A"
      value={chosen}
      options={[
        ...(chosen === "" ? [["", "custom"] as const] : []),
        [HERE, "chosen by the page"],
        ...options.map(({ title }) => [title, title] as const),
        ...points.flatMap((point) =>
          point.pair === null ? [[pointTitle(point), pointTitle(point), NO_SIDE] as const] : [],
        ),
      ]}
      onChoose={(title) => {
        const option = options.find((one) => one.title === title);
        if (title === HERE) navigate({ baseFrom: "", baseUntil: "", chartFrom: "", chartUntil: "" });
        else if (option?.isPoint) setPair(option.pair, windows.chart);
        else if (option !== undefined) set("base", option.pair.base);
      }}
    />
  );
  return (
    <section class="card sides-card" aria-label="Both sides">
      <div class="sides">
        {side("base", "A", 0)}
        {!isPhone && place}
        <button
          type="button"
          class="button icon"
          aria-label="⇄ Swap"
          title="Exchange A and B"
          onClick={() => setPair({ base: windows.comparison, comparison: windows.base }, windows.chart)}
        >
          ⇄
        </button>
        {side("comparison", "B", 1)}
        {!isPhone && said}
        <span class="spring" />
        <FoldButton fold="sides" name="How both sides are compared">
          {levelText(Number(confidence || "0.95"))} CI ▾
        </FoldButton>
      </div>
      {isOpen("sides") && (
        <div class="sides criteria">
          {isPhone && place}
          <QueryBox
            name="Selector of A"
            value={baseQuery}
            placeholder={`Baseline filter: same as B${query === "" ? "" : ` ${query}`}`}
            error={selectorFaults.value.base}
            onSubmit={(text) => navigate({ baseQuery: text === query ? "" : text, focus: "" })}
          />
          <Check
            checked={lock}
            onToggle={() => {
              const same = { ...windows, base: withLength(windows.base, lengthOf(windows.comparison)) };
              navigate({ lock: !lock, ...(lock ? {} : pairChange(same, null)) });
            }}
            title="A change of one window's length changes the other's too"
            id="lock"
          >
            Equal lengths
          </Check>
          <Choice
            label=""
            name="What of a frame is compared"
            title="What of a frame is compared: all samples with it in the stack, or those that end in it"
            id="measure"
            value={measure}
            options={[
              ["", "Total; functions by self"],
              ["total", "Total time"],
              ["self", "Self time"],
            ]}
            onChoose={(chosen) => navigate({ measure: chosen })}
          />
          <Choice
            label="Scale by"
            id="normalize"
            value={normalize}
            options={[
              ["", `auto${normalize === "" && answer !== null ? ` (${answer.normalize})` : ""}`],
              ["rate", `rate: ${levelTitle()}`],
              ["share", "share of each side"],
              ["absolute", "Raw sample counts"],
            ]}
            onChoose={(chosen) => navigate({ normalize: chosen })}
          />
          <ConfidenceSlider level={confidence} />
          {isPhone && said}
        </div>
      )}
      {answer !== null && (answer.base.samples > 0 || answer.comparison.samples > 0) && <Verdict answer={answer} />}
    </section>
  );
}
