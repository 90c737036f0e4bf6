/** One CPU's or one thread's samples in order, and what ran shortly before a frame that is looked for. */
import { useMemo } from "preact/hooks";
import {
  boxAtPlace,
  boxPlace,
  type Chart,
  clamped,
  hitsOf,
  isOneLane,
  lanesOf,
  momentText,
  type Range,
  zoomed,
} from "../../logic/flame/timeline.ts";
import { laneOf, parseSelector } from "../../logic/labels/selector.ts";
import { count, duration, plural } from "../../logic/text/format.ts";
import { parseSpan, spanText } from "../../logic/time/spans.ts";
import { goOn } from "../../logic/time/windows.ts";
import { type Wait, type WaitLane, waitOfText, waitText } from "../../logic/waits/lanes.ts";
import { isOpen, navigate, page } from "../../state/address/page.ts";
import { chart, isOpening } from "../../state/answers/lane.ts";
import {
  isLaneOpened,
  laneQuery,
  sought,
  timeline,
  timelineSums,
  USUAL_MOMENTS,
} from "../../state/answers/timeline.ts";
import { MOST_MOMENTS } from "../../state/question/question.ts";
import { theme } from "../../state/screen/theme.ts";
import { MarkerLane, MarkersMenu, WindowQuality } from "../lazyViews.tsx";
import { Check } from "../ui/Check.tsx";
import { Busy, EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "../ui/Notices.tsx";
import { Before, HitBox } from "./Before.tsx";
import { Followed, type Lane, LaneBox, Narrow, Offers } from "./Lanes.tsx";
import { SampleTable } from "./SampleTable.tsx";
import { TimelineCanvas } from "./TimelineCanvas.tsx";
import { WaitLanes } from "./WaitLanes.tsx";

export { startLane as start } from "../../state/answers/lane.ts";

export function Timeline() {
  return (
    <>
      {isOpen("data") && <WindowQuality sums={timelineSums.value} />}
      <TimelineCard />
      <Before />
    </>
  );
}

function TimelineCard() {
  const lane = laneOf(parseSelector(laneQuery.value));
  const error = timeline.error.value;
  return (
    <section class="card timeline" aria-label="Timeline">
      <Busy on={timeline.loading.value} />
      <div class="toolbar">
        <h2>Sample timeline</h2>
        {(["node", "cpu", "thread", "tid"] as const).map((label) => (
          <LaneBox key={label} label={label} value={lane[label]} />
        ))}
        <span class="spring" />
        <HitBox />
      </div>
      {error !== null && error.code !== "bad_query" && <ErrorNotice error={error} />}
      <TimelineBody lane={lane} />
    </section>
  );
}

function TimelineBody({ lane }: { lane: Lane }) {
  const query = laneQuery.value;
  const answer = timeline.data.value;
  const { chart: drawn, lanes: waiting, fault } = chart.value;
  const error = timeline.error.value;
  const lanes = useMemo(() => (answer === null ? null : lanesOf(answer.samples)), [answer]);
  if (error?.code === "bad_query")
    return <UnreadableSelector error={error} onClear={() => navigate({ query: "", focus: "" })} />;
  if (isOpening.value) return <Missing error={null} loading={true} kind="chart" />;
  if (lane.cpu + lane.tid + lane.thread === "") {
    return (
      <EmptyNotice title="Choose a CPU or a thread.">
        <p>
          What ran one after the other is told of one CPU or one thread; with several machines, also choose the node.
        </p>
        <Offers />
      </EmptyNotice>
    );
  }
  if (answer === null)
    return error !== null ? null : <Missing error={null} loading={timeline.loading.value} kind="chart" />;
  if (fault !== "") return <EmptyNotice title={`The answer is broken: ${fault}.`} />;
  if (answer.samples.offset_ns.length === 0) {
    if (timeline.stale.value) return <Missing error={null} loading={true} kind="chart" />;
    return (
      <EmptyNotice title="No samples in this window.">
        <p>
          Nothing of <code>{query}</code> ran here: choose another lane, or a longer range.
        </p>
      </EmptyNotice>
    );
  }
  if (lanes !== null && !isOneLane(lanes)) return <Narrow lanes={lanes} />;
  return drawn === null ? null : (
    <TimelineChart drawn={drawn} waiting={waiting} from={answer.from} until={answer.until} />
  );
}

interface ChartProps {
  drawn: Chart;
  waiting: readonly WaitLane[];
  from: number;
  until: number;
}

function TimelineChart({ drawn, waiting, from, until }: ChartProps) {
  const { zoom, box: place, waits, wait } = page.value;
  const told = waiting.reduce((sum, one) => sum + one.waits.length, 0);
  const chosen = useMemo(() => waitOfText(waiting, wait, from), [waiting, wait, from]);
  const chooseWait = (of: Wait | undefined) => navigate({ wait: of === undefined ? "" : waitText(of, from) }, "wait");
  const wanted = sought.value;
  const look = wanted !== null && "matcher" in wanted ? wanted : null;
  const found = useMemo(() => (look === null ? null : hitsOf(drawn, look)), [drawn, look]);
  const range = rangeOf(zoom, from, drawn.extentNs);
  const box = useMemo(() => boxAtPlace(drawn, from, place), [drawn, from, place]);
  const select = (wantedBox: number | null) =>
    navigate({ box: wantedBox === null ? "" : boxPlace(drawn, from, wantedBox) }, "box");
  const setRange = (next: Range) => {
    const whole = next.from <= 0 && next.until >= drawn.extentNs;
    const text = whole ? "" : spanText({ from: from + next.from / 1e6, until: from + next.until / 1e6 });
    navigate({ zoom: text }, "timeline");
  };
  return (
    <>
      <div class="legendbar">
        <span aria-busy={timeline.stale.value}>
          <b>{plural(drawn.boxOf.length, "sample")}</b>
          {waiting.length > 0 && `, ${plural(told, "wait")}`}
          {found === null ? "" : `, ${count(found.samples.length)} with what is looked for`}
        </span>
        {isLaneOpened.value && (
          <span
            data-testid="lane-opened"
            title="Nobody chose a CPU or a thread: this view shows the one with most samples. It filters nothing else."
          >
            of the busiest CPU, a choice of this view alone
          </span>
        )}
        <span class="dim" data-testid="timeline-range" aria-busy={timeline.stale.value}>
          in sight: {momentText(from, range.from, range.until - range.from)} –{" "}
          {momentText(from, range.until, range.until - range.from)} ({duration((range.until - range.from) / 1e9)})
        </span>
        <span class="spring" />
        <Check
          checked={waits}
          onToggle={() => navigate({ waits: !waits, wait: "" })}
          title="Between the samples: what threads waited for, and for how long"
          id="waits-shown"
        >
          Waits
        </Check>
        <MarkersMenu />
        <Followed drawn={drawn} from={from} box={box} lane={laneOf(parseSelector(laneQuery.value))} />
        <div class="segments" role="group" aria-label="Zoom">
          <button
            type="button"
            aria-label="Zoom in"
            title="Zoom in"
            onClick={() => setRange(zoomed(range, 0.5, 0.5, drawn.extentNs))}
          >
            +
          </button>
          <button
            type="button"
            aria-label="Zoom out"
            title="Zoom out"
            data-testid="timeline-out"
            onClick={() => setRange(zoomed(range, 2, 0.5, drawn.extentNs))}
          >
            −
          </button>
          <button type="button" onClick={() => setRange({ from: 0, until: drawn.extentNs })}>
            All
          </button>
        </div>
      </div>
      {!drawn.complete && <Incomplete drawn={drawn} waits={told} from={from} until={until} />}
      <div class="timeline-panes" aria-busy={timeline.stale.value}>
        <div class="timeline-chart">
          {waiting.length > 0 && (
            <WaitLanes
              lanes={waiting}
              from={from}
              range={range}
              extentNs={drawn.extentNs}
              chosen={chosen}
              theme={theme.value}
              onChoose={(at) => chooseWait(at === null ? undefined : waiting[at.lane]?.waits[at.at])}
              onRange={setRange}
            />
          )}
          <TimelineCanvas
            chart={drawn}
            from={from}
            range={range}
            search={found?.search ?? null}
            found={found?.samples ?? []}
            selected={box}
            theme={theme.value}
            colourBy={page.value.colour || "module"}
            onRange={setRange}
            onSelect={select}
            moments={(window) => <MarkerLane range={window} />}
          />
        </div>
        <SampleTable
          chart={drawn}
          from={from}
          range={range}
          waiting={waiting}
          onTake={(sample) => select(drawn.boxOf[sample] as number)}
          onTakeWait={chooseWait}
        />
      </div>
    </>
  );
}

function rangeOf(zoom: string, from: number, extentNs: number): Range {
  const span = parseSpan(zoom);
  if (span === null) return { from: 0, until: extentNs };
  return clamped({ from: (span.from - from) * 1e6, until: (span.until - from) * 1e6 }, extentNs);
}

/** What is lacking, and how to see it. */
function Incomplete({ drawn, waits, from, until }: { drawn: Chart; waits: number; from: number; until: number }) {
  const last = from + drawn.extentNs / 1e6;
  const usual = page.value.limit === "";
  const next = goOn(from, last);
  return (
    <div class="notice slim-notice" role="status" data-testid="incomplete">
      <span>
        These are the first {plural(drawn.boxOf.length, "sample")}
        {waits > 0 && ` and ${plural(waits, "wait")}`}, up to {momentText(from, drawn.extentNs, 1e9)}: the rest of the
        range, {duration((until - last) / 1000)}, is not shown.
        {next.skips && " More lie in this millisecond than are told: choose a CPU, a service or a thread to see them."}
      </span>
      {usual && (
        <button
          type="button"
          class="button"
          title={`Instead of ${count(USUAL_MOMENTS)}`}
          onClick={() => navigate({ limit: String(MOST_MOMENTS) })}
        >
          Up to {count(MOST_MOMENTS)}
        </button>
      )}
      <button
        type="button"
        class="button"
        onClick={() => navigate({ from: String(next.from), until: String(until), zoom: "", live: false })}
      >
        {next.skips ? "Go on behind it" : "Go on from there"}
      </button>
    </div>
  );
}
