/** Which CPU or thread a timeline shows: chosen by text, by what is offered, or by following a frame. */
import { useEffect, useId, useState } from "preact/hooks";
import { type Chart, type Lanes, lanesOf, whoIn } from "../../logic/flame/timeline.ts";
import { formatSelector, type LabelMatcher, type laneOf, parseSelector } from "../../logic/labels/selector.ts";
import { count, plural } from "../../logic/text/format.ts";
import { spanText } from "../../logic/time/spans.ts";
import { ROOT } from "../../logic/tree/tree.ts";
import { navigate, page } from "../../state/address/page.ts";
import { hitSeries, laneQuery } from "../../state/answers/timeline.ts";
import { meaning } from "../lazyViews.tsx";
import { EmptyNotice } from "../ui/Notices.tsx";

export type Lane = ReturnType<typeof laneOf>;
export type LaneLabel = "node" | "cpu" | "thread" | "tid";

/** One label of the lane; what contradicts it goes: a CPU is not a thread. */
export function choose(label: LaneLabel, value: string): void {
  const others: Record<LaneLabel, readonly string[]> = {
    node: ["node"],
    cpu: ["cpu", "thread", "tid"],
    thread: ["thread", "tid", "cpu"],
    tid: ["tid", "cpu"],
  };
  const kept = (parseSelector(laneQuery.peek()) ?? []).filter((m) => !others[label].includes(m.label));
  const added = value === "" ? [] : [{ label, operator: "=" as const, value }];
  navigate({ query: formatSelector([...kept, ...added]), zoom: "", box: "", focus: "" });
}

/** Around a frame that is followed from one lane to another, in nanoseconds. */
const AROUND_NS = 1e8;

/**
 * Another lane through the same moment: all of the CPU that a thread was on, or the thread alone. What is in sight
 * stays.
 */
function follow(drawn: Chart, from: number, box: number | null, matchers: LabelMatcher[]): void {
  const { tree } = drawn;
  const begin = box === null ? null : (tree.start[box] as number);
  const around =
    begin === null
      ? ""
      : spanText({
          from: from + (begin - AROUND_NS) / 1e6,
          until: from + (begin + (tree.weight[box ?? ROOT] as number) + AROUND_NS) / 1e6,
        });
  navigate({ query: formatSelector(matchers), zoom: page.peek().zoom || around, box: "", focus: "" });
}

const MOST_OFFERS = 16;

/** CPUs as buttons: where what is looked for was, most first, else all. */
export function Offers() {
  const values = useValues("cpu", "");
  const found = hitSeries.value;
  const offers =
    found.length > 0
      ? found.map(({ value, samples }) => [value, plural(samples, "sample")] as const)
      : values.map((value) => [value, ""] as const);
  return (
    <p class="offers-row" data-testid="offers">
      {found.length > 0 && <span class="dim">What is looked for ran on</span>}
      {offers.slice(0, MOST_OFFERS).map(([value, samples]) => (
        <button key={value} type="button" class="button" onClick={() => choose("cpu", value)}>
          CPU {value} <span class="dim">{samples}</span>
        </button>
      ))}
    </p>
  );
}

export function Narrow({ lanes }: { lanes: Lanes }) {
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

/** How many values are offered. */
const MOST_OFFERED = 500;

/** Values of a label in the range of the page, asked for once it is looked at; of many, those with what is typed. */
function useValues(label: string, word: string): string[] {
  const { from, until, type } = page.value;
  const [values, setValues] = useState<string[]>([]);
  useEffect(() => {
    let wanted = true;
    const asked = meaning().then((file) => file?.labelValues(label, word) ?? []);
    void asked.then((list) => {
      if (!wanted) return;
      const fitting = list.length > MOST_OFFERED ? list.filter((value) => value.includes(word)) : list;
      setValues(
        fitting.filter((value) => value !== "").toSorted((a, b) => a.localeCompare(b, undefined, { numeric: true })),
      );
    });
    return () => {
      wanted = false;
    };
  }, [label, from, until, type, word]);
  return values;
}

const LANE_WIDTH: Record<LaneLabel, number> = { node: 14, cpu: 5, thread: 15, tid: 8 };

export function LaneBox({ label, value }: { label: LaneLabel; value: string }) {
  const id = useId();
  /** Null until somebody types: a lane that is opened meanwhile changes nothing in a hand. */
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? value;
  const values = useValues(label, text);
  const take = (wanted: string) => {
    setTyped(null);
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
          setTyped(event.currentTarget.value);
          // A value that was chosen from the list, not one that is being typed.
          if (event instanceof InputEvent && event.inputType === "insertText") return;
          if (values.includes(event.currentTarget.value)) take(event.currentTarget.value);
        }}
        onChange={(event) => take(event.currentTarget.value)}
        onBlur={() => setTyped(null)}
      />
      <datalist id={id}>
        {values.slice(0, MOST_OFFERED).map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </label>
  );
}

/** The way from a thread to all of its CPU, and back. */
export function Followed({ drawn, from, box, lane }: { drawn: Chart; from: number; box: number | null; lane: Lane }) {
  if (drawn.boxOf.length === 0) return null;
  const { node, cpu, tid, thread } = whoIn(drawn, box ?? ROOT);
  const isThread = lane.cpu === "";
  if (isThread ? box === null && lanesOf(drawn.samples).cpus.length > 1 : box === null || box === ROOT) return null;
  const [text, title, own] = isThread
    ? [`All of CPU ${cpu}`, `What else ran on the CPU that ${thread} was on`, { label: "cpu", value: cpu }]
    : [`Only ${thread} (${tid})`, "This thread alone, on whatever CPU", { label: "tid", value: tid }];
  const matchers = [{ label: "node", value: node }, own].map((one) => ({ ...one, operator: "=" as const }));
  return (
    <button
      type="button"
      class="button"
      title={title}
      data-testid="follow"
      onClick={() => follow(drawn, from, box, matchers)}
    >
      {text}
    </button>
  );
}
