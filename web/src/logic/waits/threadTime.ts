/**
 * Where threads' time goes. In: the server's answer. Out: parts in their order, rows with a level for each part, and
 * the same over time as layers of a chart. Levels are thread-seconds for each observed second: threads that ran, or
 * waited.
 */
import type { ThreadTimeAnswer } from "../../api/types.ts";
import { type Stack, stackOf } from "../series/stack.ts";
import type { Sort } from "../table/sort.ts";
import { shareOf } from "../text/format.ts";
import { compareText } from "../text/names.ts";
import { inOrder, partKey } from "./parts.ts";

/** One part of all rows. */
export interface Part {
  key: string;
  seconds: number;
  level: number;
  share: number;
}

export interface TimeRow {
  name: string;
  /** Of each part, in the order of the parts. */
  levels: number[];
  seconds: number[];
  level: number;
  /** Of all time of all rows. */
  share: number;
  /** Threads that could have run, or did: running and waiting for a CPU. */
  running: number;
  queued: number;
  waiting: number;
}

export interface ThreadTime {
  parts: Part[];
  rows: TimeRow[];
  /** Thread-seconds of everything. */
  seconds: number;
  observed: number;
}

export const TIME_SORT_KEYS = ["name", "threads", "running", "queued", "waiting"] as const;
export type TimeSortKey = (typeof TIME_SORT_KEYS)[number];

const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);

/** Places of the answer's parts in the order in which they are shown; of one key there may be several. */
function places(answer: ThreadTimeAnswer): { key: string; at: number[] }[] {
  const keys = answer.parts.map((part) => partKey({ type: part.type, class: part.class }));
  return inOrder([...new Set(keys)]).map((key) => ({
    key,
    at: keys.flatMap((one, i) => (one === key ? [i] : [])),
  }));
}

export function threadTimeOf(answer: ThreadTimeAnswer): ThreadTime {
  const order = places(answer);
  const observed = answer.exposure.observed_seconds ?? 0;
  const all = sum(answer.parts.map(({ seconds }) => seconds));
  const level = (seconds: number) => shareOf(seconds, observed);
  const parts = order.map(({ key, at }) => {
    const seconds = sum(at.map((i) => answer.parts[i]?.seconds ?? 0));
    return { key, seconds, level: level(seconds), share: shareOf(seconds, all) };
  });
  const rows = answer.rows.map((row): TimeRow => {
    const seconds = order.map(({ at }) => sum(at.map((i) => row.seconds[i] ?? 0)));
    const of = (wanted: string) => level(seconds[order.findIndex(({ key }) => key === wanted)] ?? 0);
    const whole = sum(seconds);
    const [running, queued] = [of("cpu"), of("run_queue")];
    return {
      name: row.name,
      seconds,
      levels: seconds.map(level),
      level: level(whole),
      share: shareOf(whole, all),
      running,
      queued,
      waiting: Math.max(0, level(whole) - running - queued),
    };
  });
  return { parts, rows, seconds: all, observed };
}

/** Rows in the order that was asked for. */
export function sortedRows(rows: readonly TimeRow[], { key, descending }: Sort<TimeSortKey>): TimeRow[] {
  const sign = descending ? -1 : 1;
  const amount = (row: TimeRow) => (key === "name" ? 0 : key === "threads" ? row.level : row[key]);
  return rows.toSorted(
    (a, b) =>
      sign * (key === "name" ? compareText(a.name, b.name) : amount(a) - amount(b)) ||
      b.level - a.level ||
      compareText(a.name, b.name),
  );
}

/** Parts as layers, running at the bottom. */
export function partStack(answer: ThreadTimeAnswer): Stack {
  const series = places(answer).map(({ key, at }) => {
    const of = at.flatMap((i) => answer.parts[i] ?? []);
    const seconds = sum(of.map((part) => part.seconds));
    return {
      value: key,
      cores: answer.times.map((_, step) => {
        const levels = of.map(({ rates }) => rates[step] ?? null);
        return levels.every((one) => one === null) ? null : sum(levels.map((one) => one ?? 0));
      }),
      samples: 0,
      cpu_seconds: seconds,
      total: seconds * 1e9,
    };
  });
  const { from, until, step_ms, by, times, covered } = answer;
  const none = times.map(() => null);
  return stackOf({
    ...{ from, until, step_ms, by, times, covered, series },
    ...{ type: "off_cpu", unit: "cores", is_time: true, idle: none, capacity: none, other: null },
  });
}

/** Whether anything but running is told: without waits the picture lacks most of the time. */
export function hasWaits({ parts }: ThreadTime): boolean {
  return parts.some(({ key, seconds }) => key !== "cpu" && seconds > 0);
}
