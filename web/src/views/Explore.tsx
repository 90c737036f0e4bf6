/** One selection, one window: where the time went. */
import { parseTime } from "../logic/time.ts";
import { before, ordered } from "../logic/windows.ts";
import {
  awaiting,
  exploreSeries,
  flamegraph,
  focus,
  labels,
  matcher,
  present,
  ranking,
  theme,
  tree,
} from "../state/data.ts";
import { navigate, page } from "../state/index.ts";
import { exploreStack } from "../state/lists.ts";
import { ChartCard } from "./ChartCard.tsx";
import { Check } from "./Check.tsx";
import { Brush } from "./chart/Brush.tsx";
import { Download } from "./Download.tsx";
import { FunctionTable } from "./FunctionTable.tsx";
import type { Measure } from "./flame/Tooltip.tsx";
import { findName, Graph } from "./Graph.tsx";
import { InstallLine } from "./Install.tsx";
import { takeValue } from "./LayerList.tsx";
import { EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "./Notices.tsx";
import { Quality } from "./Quality.tsx";
import { RankTable } from "./RankTable.tsx";
import { TopLists } from "./TopLists.tsx";

export function Explore() {
  return (
    <>
      <ExploreChart />
      {page.value.lists && <TopLists />}
      <ExploreProfile />
    </>
  );
}

function ExploreChart() {
  return (
    <ChartCard
      series={exploreSeries}
      stack={exploreStack}
      saidBelow={flamegraph.error.value}
      label="Cores over time. Drag to choose a window."
      onRange={(w) => navigate({ from: String(w.from), until: String(w.until), live: false }, "wheel")}
      tools={
        <>
          {page.value.by !== "mode" && (
            <Check
              checked={page.value.apart}
              onToggle={() => navigate({ apart: !page.value.apart })}
              title="Time in the kernel apart, in a darker shade of the same colour"
              id="apart"
            >
              user | system
            </Check>
          )}
          <Check
            checked={page.value.lists}
            onToggle={() => navigate({ lists: !page.value.lists })}
            title="Lists of the largest nodes, services, containers, processes and threads"
            id="lists"
          >
            lists
          </Check>
          <button
            type="button"
            class="button"
            title="Compare this window with the equal one before it"
            onClick={compareWithBefore}
          >
            Compare with before
          </button>
        </>
      }
      overlay={(plot, { hover, onHover, layer, caption, spoken, zoom }) => (
        <Brush
          plot={plot}
          hover={hover}
          onHover={onHover}
          caption={caption}
          spoken={spoken}
          onZoom={zoom}
          onTake={(compare) => {
            if (layer !== null) takeValue(layer.by, layer.value, compare, layer.mode);
          }}
          onPick={(w) => navigate({ from: String(w.from), until: String(w.until), live: false })}
        />
      )}
    />
  );
}

function compareWithBefore(): void {
  const now = Date.now();
  const { from, until } = page.value;
  const window = ordered(parseTime(from, now) ?? now - 3_600_000, parseTime(until, now) ?? now);
  const base = before(window);
  navigate({
    view: "compare",
    focus: "",
    from: String(window.from),
    until: String(window.until),
    baseFrom: String(base.from),
    baseUntil: String(base.until),
    baseQuery: "",
    chartFrom: "",
    chartUntil: "",
    live: false,
  });
}

/** The profile of one window: what the page's state says it is. */
export function ExploreProfile() {
  const answer = flamegraph.data.value;
  const error = flamegraph.error.value;
  const loading = flamegraph.loading.value;
  if (answer === null) {
    if (error?.code === "bad_query")
      return <UnreadableSelector error={error} onClear={() => navigate({ query: "" })} />;
    return <Missing error={error} loading={loading} kind="graph" />;
  }
  if (answer.samples === 0) return <NoSamples />;
  const shown = tree.value.tree;
  const measure: Measure = {
    title: page.value.query === "" ? "all samples" : page.value.query,
    secondsPerSample: answer.cpu_seconds / answer.samples,
    coresPerSample: answer.cores / answer.samples,
    normalize: null,
  };
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <Quality
        name=""
        samples={answer.samples}
        cores={answer.cores}
        cpuSeconds={answer.cpu_seconds}
        periods={answer.periods}
        exposure={answer.exposure}
        quality={answer.quality}
      />
      <Graph
        measure={measure}
        loading={loading}
        download={
          <Download
            path="/flamegraph"
            parameters={{ type: answer.type, query: page.value.query, from: answer.from, until: answer.until }}
          />
        }
        table={
          shown !== null &&
          (page.value.rank === "function" ? (
            <FunctionTable
              tree={shown}
              focus={focus.value.node}
              matcher={matcher.value}
              theme={theme.value}
              choice={<RankChoice />}
              onFind={findName}
            />
          ) : (
            <RankTable answer={ranking.data.value} choice={<RankChoice />} />
          ))
        }
      />
    </>
  );
}

function RankChoice() {
  const known = labels.data.value?.labels ?? [];
  return (
    <select
      aria-label="Rank by"
      value={page.value.rank}
      data-testid="rank"
      onChange={(event) => navigate({ rank: event.currentTarget.value })}
    >
      <option value="function">function</option>
      {known.map((label) => (
        <option key={label} value={label}>
          {label}
        </option>
      ))}
    </select>
  );
}

function NoSamples() {
  const { query, from, until } = page.value;
  const now = present.value;
  const length = (parseTime(until, now) ?? now) - (parseTime(from, now) ?? now);
  return (
    <EmptyNotice title="No samples in this window.">
      {query !== "" && (
        <p>
          Nothing matches <code>{query}</code> here.{" "}
          <button type="button" class="button" onClick={() => navigate({ query: "" })}>
            Show everything
          </button>
        </p>
      )}
      {length < 86_400_000 && (
        <p>
          Perhaps it ran at another time.{" "}
          <button type="button" class="button" onClick={() => navigate({ from: "now-24h", until: "now" })}>
            Look at 24 hours
          </button>
        </p>
      )}
      {awaiting.value && <p class="dim">Looking again every few seconds.</p>}
      {query === "" && <InstallLine />}
    </EmptyNotice>
  );
}
