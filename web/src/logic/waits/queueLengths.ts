/**
 * How long threads waited for a CPU. In: the server's answer. Out: the label by which it can be asked, lines over time
 * on a logarithmic scale, rows of a table. Lengths are seconds.
 */
import type { QueueLine, RunQueueAnswer } from "../../api/types.ts";
import { parseSelector } from "../labels/selector.ts";
import type { Sort } from "../table/sort.ts";
import { compareText } from "../text/names.ts";
import { CLASS, STATE, withoutWaits } from "./chips.ts";

/** What waits for a CPU are not counted by: a program's threads are one, and a wait is a number. */
const UNCOUNTED: readonly string[] = ["tgid", "thread", "tid", "mode"];
const OF_SAMPLES = ["wait.", "woken."];

const isUncounted = (label: string) => UNCOUNTED.includes(label) || OF_SAMPLES.some((begin) => label.startsWith(begin));

/** The selector without conditions on kinds of waits: all waits for a CPU count, whatever else its thread waits for. */
export function ofQueues(query: string): string {
  return withoutWaits(query) ?? query;
}

/** Whether it has such conditions. */
export function hasKinds(query: string): boolean {
  return (parseSelector(query) ?? []).some(({ label }) => label === CLASS || label === STATE);
}

/** By what of the selector waits are not counted, so that nothing is told of what it selects. */
export function uncounted(query: string): string | undefined {
  return (parseSelector(ofQueues(query)) ?? []).map(({ label }) => label).find(isUncounted);
}

/** The label to ask by where the page is by `by`: a thread's waits are counted as its program's. */
export function queueLabel(by: string): string {
  return isUncounted(by) ? "process" : by;
}

export const LINES = ["longest", "p99", "median"] as const;
export type LineKey = (typeof LINES)[number];

export interface QueueRow {
  name: string;
  waits: number;
  /** Threads that waited, as a mean over the window. */
  threads: number;
  median: number | null;
  p99: number | null;
  longest: number;
  /** Share of the CPUs' time in which they had nothing to do; null of programs. */
  idle: number | null;
}

export const QUEUE_SORT_KEYS = ["name", "waits", "threads", "median", "p99", "longest", "idle"] as const;
export type QueueSortKey = (typeof QUEUE_SORT_KEYS)[number];

const seconds = (ns: number | null) => (ns === null ? null : ns / 1e9);

export function queueRow(line: QueueLine, windowMs: number): QueueRow {
  return {
    name: line.value,
    waits: line.waits,
    threads: windowMs > 0 ? line.total_ns / 1e6 / windowMs : 0,
    median: seconds(line.p50_ns),
    p99: seconds(line.p99_ns),
    longest: line.longest_ns / 1e9,
    idle: idleShare(line),
  };
}

function idleShare({ ticks, idle_ticks }: QueueLine): number | null {
  if (!ticks || typeof idle_ticks !== "number") return null;
  return Math.min(1, idle_ticks / ticks);
}

export function sortedQueueRows(rows: readonly QueueRow[], { key, descending }: Sort<QueueSortKey>): QueueRow[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const order = key === "name" ? compareText(a.name, b.name) : (a[key] ?? -1) - (b[key] ?? -1);
    return sign * order || b.threads - a.threads || compareText(a.name, b.name);
  });
}

export interface QueueCourse {
  /** Begins of the steps and the end of the last, Unix milliseconds. */
  edges: number[];
  /** Seconds in each step; null where no wait ended. */
  lines: Record<LineKey, (number | null)[]>;
  waits: number[];
  /** Powers of ten of seconds that the scale begins and ends with. */
  least: number;
  most: number;
}

export function queueCourse(answer: RunQueueAnswer, line: QueueLine = answer.all): QueueCourse {
  const { steps } = line;
  const edges = [...answer.times, answer.until];
  const longest = steps.longest_ns.map((ns, i) => ((steps.waits[i] ?? 0) > 0 ? ns / 1e9 : null));
  const lines = { longest, p99: steps.p99_ns.map(seconds), median: steps.p50_ns.map(seconds) };
  const told = [...longest, ...lines.median].filter((one): one is number => one !== null && one > 0);
  const power = (value: number, round: (value: number) => number) => round(Math.log10(value));
  // From a microsecond on, which is the shortest that agents tell apart.
  const least = told.length === 0 ? -6 : Math.max(-6, power(Math.min(...told), Math.floor));
  const most = told.length === 0 ? -3 : Math.max(least + 1, power(Math.max(...told), Math.ceil));
  return { edges, lines, waits: steps.waits, least, most };
}

/** How high a length lies on the scale, from 0 to 1. */
export function queueHeight(value: number, { least, most }: QueueCourse): number {
  const height = (Math.log10(Math.max(value, 1e-9)) - least) / (most - least);
  return Math.min(1, Math.max(0, height));
}

/** The line as steps of an SVG path, in a box of this size; it is broken where no wait ended. */
export function queuePath(course: QueueCourse, key: LineKey, width: number, height: number): string {
  const [from, until] = [course.edges[0] as number, course.edges.at(-1) as number];
  const x = (moment: number) => ((width * (moment - from)) / Math.max(1, until - from)).toFixed(1);
  let path = "";
  let isOpen = false;
  course.lines[key].forEach((value, i) => {
    if (value === null) {
      isOpen = false;
      return;
    }
    const y = (height * (1 - queueHeight(value, course))).toFixed(1);
    path += `${isOpen ? "L" : "M"}${x(course.edges[i] as number)} ${y}H${x(course.edges[i + 1] as number)}`;
    isOpen = true;
  });
  return path;
}

/** The step in which a share of the course's time lies; -1 without steps. */
export function queueStep(course: QueueCourse, share: number): number {
  const [from, until] = [course.edges[0] as number, course.edges.at(-1) as number];
  const moment = from + share * (until - from);
  const behind = course.edges.findIndex((edge) => edge > moment);
  return Math.min(course.waits.length - 1, (behind < 0 ? course.edges.length : behind) - 1);
}
