/** One CPU's or one thread's samples in order, and what ran shortly before a frame that is looked for. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { axisNumber, count, duration, plural } from "../logic/format.ts";
import { formatSelector, laneOf, parseSelector } from "../logic/selector.ts";
import { parseSpan, spanText } from "../logic/spans.ts";
import {
  type Chart,
  clamped,
  hitsOf,
  isOneLane,
  type Lanes,
  lanesOf,
  momentText,
  type Range,
  zoomed,
} from "../logic/timeline.ts";
import {
  beforeHits,
  focus,
  MOST_MOMENTS,
  matcher,
  sought,
  theme,
  timeline,
  tree,
  USUAL_MOMENTS,
} from "../state/data.ts";
import { navigate, page } from "../state/index.ts";
import { labelValues } from "../state/labels.ts";
import { chart } from "../state/timeline.ts";
import { FunctionTable } from "./FunctionTable.tsx";
import { findName, Graph } from "./Graph.tsx";
import { Busy, EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "./Notices.tsx";
import { SampleTable } from "./timeline/SampleTable.tsx";
import { TimelineCanvas } from "./timeline/TimelineCanvas.tsx";

type LaneLabel = "node" | "cpu" | "thread" | "tid";

/** One label of the lane; what contradicts it goes: a CPU is not a thread. */
function choose(label: LaneLabel, value: string): void {
  const others: Record<LaneLabel, readonly string[]> = {
    node: ["node"],
    cpu: ["cpu", "thread", "tid"],
    thread: ["thread", "tid", "cpu"],
    tid: ["tid", "cpu"],
  };
  const kept = (parseSelector(page.peek().query) ?? []).filter((m) => !others[label].includes(m.label));
  const added = value === "" ? [] : [{ label, operator: "=" as const, value }];
  navigate({ query: formatSelector([...kept, ...added]), zoom: "", focus: "" });
}

export function Timeline() {
  return (
    <>
      <TimelineCard />
      <Before />
    </>
  );
}

function TimelineCard() {
  const lane = laneOf(parseSelector(page.value.query));
  const error = timeline.error.value;
  return (
    <section class="card timeline" aria-label="Timeline">
      <Busy on={timeline.loading.value} />
      <div class="toolbar">
        <h2>In order</h2>
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

function TimelineBody({ lane }: { lane: ReturnType<typeof laneOf> }) {
  const { query } = page.value;
  const answer = timeline.data.value;
  const { chart: drawn, fault } = chart.value;
  const error = timeline.error.value;
  const lanes = useMemo(() => (answer === null ? null : lanesOf(answer.samples)), [answer]);
  if (error?.code === "bad_query")
    return <UnreadableSelector error={error} onClear={() => navigate({ query: "", focus: "" })} />;
  if (lane.cpu + lane.tid + lane.thread === "") {
    return (
      <EmptyNotice title="Choose a CPU or a thread.">
        <p>
          What ran one after the other is told of one CPU or one thread; with several machines, also choose the node.
        </p>
        <Offers label="cpu" title="CPU" />
      </EmptyNotice>
    );
  }
  if (answer === null)
    return error !== null ? null : <Missing error={null} loading={timeline.loading.value} kind="chart" />;
  if (fault !== "") return <EmptyNotice title={`The answer is broken: ${fault}.`} />;
  if (answer.samples.offset_ns.length === 0) {
    return (
      <EmptyNotice title="No samples in this window.">
        <p>
          Nothing of <code>{query}</code> ran here: choose another lane, or a longer range.
        </p>
      </EmptyNotice>
    );
  }
  if (lanes !== null && !isOneLane(lanes)) return <Narrow lanes={lanes} />;
  return drawn === null ? null : <TimelineChart drawn={drawn} from={answer.from} until={answer.until} />;
}

/** Values of a label as buttons. */
function Offers({ label, title }: { label: LaneLabel; title: string }) {
  const values = useValues(label);
  return (
    <p class="offers-row">
      {values.slice(0, 16).map((value) => (
        <button key={value} type="button" class="button" onClick={() => choose(label, value)}>
          {title} {value}
        </button>
      ))}
    </p>
  );
}

function Narrow({ lanes }: { lanes: Lanes }) {
  const offer = (label: LaneLabel, value: string, text: string, samples: number) => (
    <button key={`${label}${value}`} type="button" class="button" onClick={() => choose(label, value)}>
      {text} <span class="dim">{count(samples)}</span>
    </button>
  );
  return (
    <EmptyNotice
      title={
        lanes.nodes.length > 1
          ? `These samples are of ${lanes.nodes.length} nodes.`
          : "These samples are of several CPUs and threads."
      }
    >
      <p>Choose one, so that their order means something.</p>
      <p class="offers-row">
        {lanes.nodes.length > 1
          ? lanes.nodes.slice(0, 24).map(([node, samples]) => offer("node", node, node, samples))
          : [
              ...lanes.threads
                .slice(0, 12)
                .map(({ tid, thread, samples }) => offer("tid", tid, `${thread} (${tid})`, samples)),
              ...lanes.cpus.slice(0, 12).map(([cpu, samples]) => offer("cpu", cpu, `CPU ${cpu}`, samples)),
            ]}
      </p>
    </EmptyNotice>
  );
}

/** The values of a label in the range of the page; asked for once it is looked at. */
function useValues(label: string): string[] {
  const { from, until, type } = page.value;
  const [values, setValues] = useState<string[]>([]);
  useEffect(() => {
    const controller = new AbortController();
    void labelValues(label, controller.signal).then((list) => {
      if (!controller.signal.aborted)
        setValues(
          list.filter((value) => value !== "").toSorted((a, b) => a.localeCompare(b, undefined, { numeric: true })),
        );
    });
    return () => controller.abort();
  }, [label, from, until, type]);
  return values;
}

const LANE_WIDTH: Record<LaneLabel, number> = { node: 14, cpu: 5, thread: 15, tid: 8 };

function LaneBox({ label, value }: { label: LaneLabel; value: string }) {
  const id = useId();
  const values = useValues(label);
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const take = (wanted: string) => {
    if (wanted !== value) choose(label, wanted.trim());
  };
  return (
    <label class="inline">
      {label === "cpu" ? "CPU" : label}{" "}
      <input
        type="text"
        list={id}
        size={LANE_WIDTH[label]}
        value={text}
        autoComplete="off"
        spellcheck={false}
        placeholder={label === "node" && values.length === 1 ? values[0] : "any"}
        data-testid={`lane-${label}`}
        onInput={(event) => {
          setText(event.currentTarget.value);
          // A value that was chosen from the list, not one that is being typed.
          if (event instanceof InputEvent && event.inputType === "insertText") return;
          if (values.includes(event.currentTarget.value)) take(event.currentTarget.value);
        }}
        onChange={(event) => take(event.currentTarget.value)}
      />
      <datalist id={id}>
        {values.slice(0, 500).map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </label>
  );
}

function TimelineChart({ drawn, from, until }: { drawn: Chart; from: number; until: number }) {
  const { zoom } = page.value;
  const [selected, setSelected] = useState<{ of: Chart; box: number } | null>(null);
  const wanted = sought.value;
  const look = wanted !== null && "matcher" in wanted ? wanted.matcher : null;
  const found = useMemo(() => (look === null ? null : hitsOf(drawn, look)), [drawn, look]);
  const range = rangeOf(zoom, from, drawn.extentNs);
  const box = selected?.of === drawn ? selected.box : null;
  const setRange = (next: Range) => {
    const whole = next.from <= 0 && next.until >= drawn.extentNs;
    const text = whole ? "" : spanText({ from: from + next.from / 1e6, until: from + next.until / 1e6 });
    navigate({ zoom: text }, "timeline");
  };
  return (
    <>
      <div class="legendbar">
        <span>
          <b>{plural(drawn.boxOf.length, "sample")}</b>
          {found === null ? "" : `, ${count(found.samples.length)} with what is looked for`}
        </span>
        <span class="dim" data-testid="timeline-range">
          in sight: {momentText(from, range.from, range.until - range.from)} –{" "}
          {momentText(from, range.until, range.until - range.from)} ({duration((range.until - range.from) / 1e9)})
        </span>
        <span class="spring" />
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
      {!drawn.complete && <Incomplete drawn={drawn} from={from} until={until} />}
      <div class="timeline-panes">
        <div class="timeline-chart">
          <TimelineCanvas
            chart={drawn}
            from={from}
            range={range}
            search={found?.search ?? null}
            found={found?.samples ?? []}
            selected={box}
            theme={theme.value}
            onRange={setRange}
            onSelect={(wantedBox) => setSelected(wantedBox === null ? null : { of: drawn, box: wantedBox })}
          />
        </div>
        <SampleTable
          chart={drawn}
          from={from}
          range={range}
          onTake={(sample) => setSelected({ of: drawn, box: drawn.boxOf[sample] as number })}
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
function Incomplete({ drawn, from, until }: { drawn: Chart; from: number; until: number }) {
  const last = from + drawn.extentNs / 1e6;
  const usual = page.value.limit === "";
  return (
    <div class="notice slim-notice" role="status" data-testid="incomplete">
      <span>
        These are the first {count(drawn.boxOf.length)} samples, up to {momentText(from, drawn.extentNs, 1e9)}: the rest
        of the range, {duration((until - last) / 1000)}, is not shown.
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
        onClick={() => navigate({ from: String(Math.floor(last)), until: String(until), zoom: "", live: false })}
      >
        Go on from there
      </button>
    </div>
  );
}

const BEFORE_MS = ["1", "5", "10", "50", "100", "500", "1000"] as const;

function beforeText(ms: string): string {
  return Number(ms) >= 1000 ? `${axisNumber(Number(ms) / 1000)} s` : `${ms} ms`;
}

/** What is looked for, and how long before it is of interest. */
function HitBox() {
  const { hit, before } = page.value;
  const [text, setText] = useState(hit);
  useEffect(() => setText(hit), [hit]);
  const wanted = sought.value;
  const fault = wanted !== null && "error" in wanted ? wanted.error : "";
  return (
    <>
      <label class="inline">
        what ran in the{" "}
        <select
          value={before}
          data-testid="before"
          onChange={(event) => navigate({ before: event.currentTarget.value, focus: "" })}
        >
          <option value="">…</option>
          {(BEFORE_MS.includes(before as "1") || before === "" ? BEFORE_MS : [before, ...BEFORE_MS]).map((ms) => (
            <option key={ms} value={ms}>
              {beforeText(ms)}
            </option>
          ))}
        </select>{" "}
        before
      </label>
      <div class={`search${fault === "" ? "" : " bad"}`}>
        <input
          type="search"
          placeholder="a function or /regex/"
          aria-label="Find in the timeline"
          aria-invalid={fault !== ""}
          spellcheck={false}
          value={text}
          data-testid="hit"
          onInput={(event) => {
            setText(event.currentTarget.value);
            navigate({ hit: event.currentTarget.value, focus: "" }, "hit");
          }}
        />
        {fault !== "" && (
          <span class="search-fault" role="alert">
            {fault}
          </span>
        )}
      </div>
    </>
  );
}

function Before() {
  const { before, hit } = page.value;
  const answer = beforeHits.data.value;
  const error = beforeHits.error.value;
  const loading = beforeHits.loading.value;
  if (before === "" || hit === "") return null;
  const title = `what ran in the ${beforeText(before)} before ${hit}`;
  if (answer === null) return <Missing error={error} loading={loading} kind="graph" />;
  if (answer.samples === 0) {
    return (
      <EmptyNotice title={`Nothing ran in the ${beforeText(before)} before.`}>
        <p>
          No sample of the selection has such a frame, or the CPU was idle before: look for something else, or further
          back.
        </p>
      </EmptyNotice>
    );
  }
  const shown = tree.value.tree;
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <BeforeTitle>
        <b>{plural(answer.samples, "sample")}</b> of {title}, on the same CPU; each counts once.
      </BeforeTitle>
      <Graph
        measure={{
          title,
          secondsPerSample: answer.cpu_seconds / answer.samples,
          coresPerSample: answer.cores / answer.samples,
          normalize: null,
        }}
        loading={loading}
        download={null}
        table={
          shown !== null && (
            <FunctionTable
              tree={shown}
              focus={focus.value.node}
              matcher={matcher.value}
              theme={theme.value}
              choice={null}
              onFind={findName}
            />
          )
        }
      />
    </>
  );
}

function BeforeTitle({ children }: { children: ComponentChildren }) {
  return (
    <div class="before-title" role="status" data-testid="before-title">
      {children}
    </div>
  );
}
