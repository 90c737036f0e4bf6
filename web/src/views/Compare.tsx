/** Two windows, or two selections: what changed, and what only looks as if it had. */
import type { DiffAnswer, Normalize } from "../api/index.ts";
import { cores, count, percent, plural } from "../logic/format.ts";
import { meanWithin } from "../logic/stack.ts";
import { rangeText } from "../logic/time.ts";
import { around, isSame, lengthOf, type Pair, placesBefore, type Window } from "../logic/windows.ts";
import {
  compareSeries,
  compareStack,
  diff,
  diffTop,
  matcher,
  pair,
  pairParameters,
  present,
  selectorFaults,
} from "../state/data.ts";
import { navigate, page } from "../state/index.ts";
import { ChartCard } from "./ChartCard.tsx";
import { WindowPair } from "./chart/WindowPair.tsx";
import { DiffTable } from "./DiffTable.tsx";
import { Download } from "./Download.tsx";
import { findName, Graph } from "./Graph.tsx";
import { Menu } from "./Menu.tsx";
import { EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "./Notices.tsx";
import { Quality } from "./Quality.tsx";
import { QueryBox } from "./QueryBox.tsx";
import { Moments } from "./TimeRange.tsx";

function setPair({ base, comparison }: Pair, chart: Window | null, gesture = ""): void {
  navigate(
    {
      baseFrom: String(base.from),
      baseUntil: String(base.until),
      from: String(comparison.from),
      until: String(comparison.until),
      chartFrom: chart === null ? "" : String(chart.from),
      chartUntil: chart === null ? "" : String(chart.until),
    },
    gesture,
  );
}

export function Compare() {
  return (
    <>
      <CompareChart />
      <Sides />
      <CompareProfile />
    </>
  );
}

function CompareChart() {
  const windows = pair.value;
  return (
    <ChartCard
      series={compareSeries}
      stack={compareStack}
      saidBelow={diff.error.value}
      label="Cores over time with the two windows that are compared."
      tools={
        <>
          <button
            type="button"
            class="button"
            title="Let the chart show both windows closely"
            onClick={() => setPair(windows, around(windows.base, windows.comparison))}
          >
            Fit
          </button>
          <button
            type="button"
            class="button"
            title="Exchange before and after"
            onClick={() => setPair({ base: windows.comparison, comparison: windows.base }, windows.chart)}
          >
            ⇄ Swap
          </button>
        </>
      }
      overlay={(plot, { onHover }) => (
        <WindowPair
          plot={plot}
          pair={windows}
          now={present.value}
          onHover={(moment) => onHover(moment === null ? null : { moment, height: Number.POSITIVE_INFINITY })}
          onChange={(changed, gesture) => setPair(changed, windows.chart, gesture)}
        />
      )}
    />
  );
}

function Sides() {
  const windows = pair.value;
  const { baseQuery, query, normalize } = page.value;
  const stack = compareStack.value;
  const answer = diff.data.value;
  const now = present.value;
  const set = (side: keyof Pair, window: Window) => setPair({ ...windows, [side]: window }, null);
  const side = (name: keyof Pair, letter: string, word: string) => {
    const window = windows[name];
    // The chart is of B's selector.
    const level = stack === null || (name === "base" && baseQuery !== "") ? null : meanWithin(stack, window);
    return (
      <div class={`side ${name}`}>
        <span class="side-letter">{letter}</span>
        <span>{word}</span>
        <Menu label={rangeText(window, now)} name={`Choose window ${letter}`}>
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
        {level !== null && <span class="dim">{cores(level)} cores</span>}
      </div>
    );
  };
  const places = placesBefore(windows.comparison);
  const place = places.find(([, window]) => isSame(window, windows.base));
  return (
    <div class="sides card">
      {side("base", "A", "before")}
      <label class="inline">
        A is{" "}
        <select
          value={place?.[0] ?? ""}
          aria-label="Place window A"
          onChange={(event) => {
            const chosen = places.find(([title]) => title === event.currentTarget.value);
            if (chosen !== undefined) set("base", chosen[1]);
          }}
        >
          {place === undefined && <option value="">where you put it</option>}
          {places.map(([title]) => (
            <option key={title}>{title}</option>
          ))}
        </select>
      </label>
      <QueryBox
        name="Selector of A"
        value={baseQuery}
        placeholder={`A: same as B${query === "" ? "" : ` ${query}`}`}
        error={selectorFaults.value.base}
        onSubmit={(text) => navigate({ baseQuery: text === query ? "" : text, focus: "" })}
      />
      {side("comparison", "B", "after")}
      <span class="spring" />
      <label class="inline">
        normalise{" "}
        <select
          value={normalize}
          data-testid="normalize"
          onChange={(event) => navigate({ normalize: event.currentTarget.value as Normalize | "" })}
        >
          <option value="">auto{normalize === "" && answer !== null ? ` (${answer.normalize})` : ""}</option>
          <option value="rate">rate: cores</option>
          <option value="share">share of each side</option>
          <option value="absolute">samples as they are</option>
        </select>
      </label>
      {lengthOf(windows.base) !== lengthOf(windows.comparison) && normalize === "absolute" && (
        <span class="warn-text">The windows differ in length: absolute numbers do too.</span>
      )}
    </div>
  );
}

/** The difference of two windows: what the page's state says they are. */
export function CompareProfile() {
  const answer = diff.data.value;
  const error = diff.error.value;
  const loading = diff.loading.value;
  const top = diffTop.data.value;
  const { only, width, query, baseQuery } = page.value;
  if (answer === null) {
    if (error?.code === "bad_query") {
      const wrong = selectorFaults.value.base === null ? { query: "" } : { baseQuery: "" };
      return <UnreadableSelector error={error} onClear={() => navigate({ ...wrong, focus: "" })} />;
    }
    return <Missing error={error} loading={loading} kind="graph" />;
  }
  const { base, comparison } = answer;
  if (base.samples === 0 && comparison.samples === 0) {
    return (
      <EmptyNotice title="Neither window has samples.">
        <p>Drag the windows to where the chart shows something, or change the selector.</p>
      </EmptyNotice>
    );
  }
  const significant = only === "significant";
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <div class="verdict card">
        <div role="status" data-testid="verdict">
          <b class={answer.states[answer.nodes.state[0] ?? 0] ?? "same"}>
            {cores(base.cores)} → {cores(comparison.cores)} cores
          </b>
          <div
            title={`Of the coloured frames, ${percent(answer.false_discovery_rate)} are expected to be there by chance. Samples come in bursts: their counts scatter ${answer.dispersion.toFixed(1)} times as much as independent ones, which the test takes into account.`}
          >
            {verdictOf(answer)}
          </div>
        </div>
        <div>
          <Quality name="A" {...side(base)} />
          <Quality name="B" {...side(comparison)} />
        </div>
      </div>
      <Graph
        measure={{
          title: `the difference of ${baseQuery === "" ? query || "all samples" : `${baseQuery} and ${query || "all samples"}`}`,
          secondsPerSample: answer.period_ns / 1e9,
          coresPerSample: 0,
          normalize: answer.normalize,
        }}
        loading={loading}
        download={<Download path="/diff" parameters={pairParameters()} />}
        tools={
          <>
            <label class="inline">
              width{" "}
              <select
                value={width}
                onChange={(event) => navigate({ width: event.currentTarget.value as "both" | "before" | "after" })}
              >
                <option value="both">A + B</option>
                <option value="before">A, before</option>
                <option value="after">B, after</option>
              </select>
            </label>
            <label class="inline check">
              <input
                type="checkbox"
                checked={significant}
                data-testid="only-significant"
                onChange={() => navigate({ only: significant ? "" : "significant" })}
              />{" "}
              only significant
            </label>
          </>
        }
        table={
          <DiffTable
            rows={top?.rows ?? []}
            normalize={answer.normalize}
            matcher={matcher.value}
            onlySignificant={significant}
            complete={top?.complete ?? true}
            onFind={findName}
          />
        }
      />
    </>
  );
}

function verdictOf({ base, comparison, tested, significant }: DiffAnswer): string {
  if (base.samples === 0) return "A has no samples: there is nothing to compare B with";
  if (comparison.samples === 0) return "B has no samples: there is nothing to compare A with";
  if (tested === 0) return "too few samples to tell a difference";
  if (significant === 0) return "nothing differs beyond chance";
  return `${count(significant)} of ${plural(tested, "tested frame")} differ`;
}

function side(answer: {
  samples: number;
  cores: number;
  cpu_seconds: number;
  periods: Parameters<typeof Quality>[0]["periods"];
  exposure: Parameters<typeof Quality>[0]["exposure"];
  quality: Parameters<typeof Quality>[0]["quality"];
}) {
  const { samples, cpu_seconds: cpuSeconds, periods, exposure, quality } = answer;
  return { samples, cores: answer.cores, cpuSeconds, periods, exposure, quality };
}
