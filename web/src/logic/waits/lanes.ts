/**
 * Waits beside the samples of a timeline. In: an answer with both. Out: the samples alone, and waits by thread: each
 * ends at its time stamp, a sleep where the wait for a CPU behind it began, and has the length that its sender says.
 * Where none is said it is as long as its value, but for what the thread is known to have done meanwhile: a value is
 * counted in periods, so that it is about the length of a long wait; a short one stands for others, too.
 */
import type { TimelineAnswer, TimelineSamples } from "../../api/types.ts";
import { momentText, type Range } from "../flame/timeline.ts";
import { duration } from "../text/format.ts";
import { isWait } from "../text/unit.ts";
import { partKey, partOf, stateWords } from "./parts.ts";
import { KERNEL_BEGIN, wokenBy } from "./wokenBy.ts";

export interface Wait {
  /** Nanoseconds from the answer's start; not before something was last told of its thread. */
  start: number;
  end: number;
  /** Nanoseconds that it stands for. */
  value: number;
  /** Nanoseconds of its own, also before the answer's start. */
  length: number;
  /** The sender said how long it was. */
  isLengthKnown: boolean;
  /** Its length is not known, and its begin is when the thread was last seen: it may have begun later. */
  isCut: boolean;
  /** As `partOf` takes it. */
  part: string;
  state: string;
  /** The system call or the function that it waited in; empty where that is not told. */
  place: string;
  /** Who ended it, in words; empty where that was not sampled. */
  waker: string;
  node: string;
  tid: string;
  thread: string;
  service: string;
  cpu: string;
}

/** Waits of one thread, in the order of time. */
export interface WaitLane {
  tid: string;
  thread: string;
  service: string;
  waits: Wait[];
  /** Nanoseconds for a CPU, and for anything else that is no idleness. */
  queued: number;
  waited: number;
}

/** The columns of some samples. */
function only(samples: TimelineSamples, places: readonly number[]): TimelineSamples {
  const pick = <T>(column: readonly T[]) => places.map((i) => column[i] as T);
  return {
    offset_ns: pick(samples.offset_ns),
    node: pick(samples.node),
    cpu: pick(samples.cpu),
    tid: pick(samples.tid),
    tgid: pick(samples.tgid),
    service: pick(samples.service),
    thread: pick(samples.thread),
    mode: pick(samples.mode),
    value_ns: pick(samples.value_ns),
    stack: pick(samples.stack),
  };
}

const SYSTEM_CALL = /^(?:__x64_|__arm64_|__ia32_|__se_|__do_|k)?sys_(\w+)$/;

/** `read()` of the kernel's functions, else the innermost function that is none of the kernel. */
function placesOf({ nodes, strings, kinds }: TimelineAnswer): (leaf: number) => string {
  const known = new Map<number, string>();
  const find = (leaf: number): string => {
    let outer = "";
    for (let node = leaf; node > 0; node = nodes.parent[node] ?? 0) {
      const name = strings[nodes.name[node] ?? 0] ?? "";
      // What has no name stands in brackets.
      if (kinds[nodes.kind[node] ?? 0] !== "kernel") return name === "" || name.startsWith("[") ? name : `${name}()`;
      const call = SYSTEM_CALL.exec(name)?.[1];
      if (call !== undefined) return `${call}()`;
      if (!KERNEL_BEGIN.has(name)) outer = name;
    }
    return outer === "" ? "" : `${outer}()`;
  };
  return (leaf) => {
    const place = known.get(leaf) ?? find(leaf);
    known.set(leaf, place);
    return place;
  };
}

/** A sleep that is told again and again is told to a period each time: more than that is for others. */
const SLACK = 1.5;

/** Tells a sample's thread from those of all nodes. */
const threadKey = ({ node, tid }: TimelineSamples, i: number) => `${node[i]} ${tid[i]}`;

/** Of each thread, asked in the order of time: when something was last told of it before a moment. */
function lastSeen(): (thread: string, at: number) => number {
  const known = new Map<string, { at: number; before: number }>();
  return (thread, at) => {
    const last = known.get(thread);
    // Both parts of one wait are told at one moment.
    const before = last === undefined ? Number.NEGATIVE_INFINITY : last.at < at ? last.at : last.before;
    known.set(thread, { at, before });
    return before;
  };
}

/** Of a thread at a moment how long it had waited for a CPU by then, where that is said. */
function queuedBy({ samples, types }: TimelineAnswer): (i: number) => number {
  const { offset_ns: ends, sample_type: kinds, wait_ns: lengths } = samples;
  const key = (i: number) => `${threadKey(samples, i)} ${ends[i]}`;
  const known = new Map<string, number>();
  lengths?.forEach((length, i) => {
    if (length !== null && types?.[kinds?.[i] ?? 0] === "run_queue") known.set(key(i), length);
  });
  return (i) => known.get(key(i)) ?? 0;
}

/** Samples that are no waits, as an answer of their own, and the waits. */
export function apart(answer: TimelineAnswer): { own: TimelineAnswer; waits: Wait[] } {
  const { samples, types } = answer;
  const { sample_type: kinds, wait_class: classes, wait_state: states, wait_ns: lengths } = samples;
  if (types === undefined || kinds === undefined) return { own: answer, waits: [] };
  const place = placesOf(answer);
  const seen = lastSeen();
  const queued = queuedBy(answer);
  const woken = wokenBy(answer);
  const own: number[] = [];
  const waits: Wait[] = [];
  samples.offset_ns.forEach((told, i) => {
    const type = types[kinds[i] ?? 0] ?? "";
    const last = seen(threadKey(samples, i), told);
    const value = samples.value_ns[i] ?? 0;
    if (!isWait(type)) {
      own.push(i);
      return;
    }
    const known = lengths?.[i] ?? null;
    const end = known === null || type === "run_queue" ? told : Math.max(0, last, told - queued(i));
    const begin = known === null ? Math.max(told - value, last, 0) : end - known;
    waits.push({
      start: Math.max(0, begin, last),
      end,
      value,
      length: end - begin,
      isLengthKnown: known !== null,
      isCut: known === null && value > SLACK * (told - last),
      part: partKey({ type, class: classes?.[i] ?? "" }),
      state: states?.[i] ?? "",
      place: place(samples.stack[i] ?? 0),
      waker: woken(i),
      node: samples.node[i] ?? "",
      tid: String(samples.tid[i] ?? ""),
      thread: samples.thread[i] ?? "",
      service: samples.service[i] ?? "",
      cpu: String(samples.cpu[i] ?? ""),
    });
  });
  // A sleep ends before the wait for a CPU that is told with it.
  waits.sort((a, b) => a.end - b.end || a.start - b.start);
  return { own: { ...answer, samples: only(samples, own) }, waits };
}

/** By thread: those that waited longest for a CPU come first, then those that waited longest for something. */
export function waitLanes(waits: readonly Wait[]): WaitLane[] {
  const lanes = new Map<string, WaitLane>();
  for (const wait of waits) {
    const { tid, thread, service } = wait;
    const lane = lanes.get(tid) ?? { tid, thread, service, waits: [], queued: 0, waited: 0 };
    lane.waits.push(wait);
    if (wait.part === "run_queue") lane.queued += wait.value;
    else if (wait.state !== "idle") lane.waited += wait.value;
    lanes.set(tid, lane);
  }
  return [...lanes.values()].sort((a, b) => b.queued - a.queued || b.waited - a.waited);
}

/** A wait that is pointed at or chosen: the place of its lane, and its place there. */
export interface WaitPlace {
  lane: number;
  at: number;
}

/** The wait of a lane at a moment, of several the last; null where none lasts until then. */
export function waitAt({ waits }: WaitLane, moment: number, reach: number): number | null {
  let best: number | null = null;
  waits.forEach(({ start, end }, i) => {
    if (moment >= start - reach && moment <= end + reach) best = i;
  });
  return best;
}

/** The wait of a lane that ends nearest to a moment. */
export function nearestWait({ waits }: WaitLane, moment: number): number {
  let best = 0;
  waits.forEach(({ end }, i) => {
    if (Math.abs(end - moment) < Math.abs((waits[best] as Wait).end - moment)) best = i;
  });
  return best;
}

const STEPS: Readonly<Record<string, readonly [lane: number, at: number]>> = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
};

/** Where a key leads from a chosen wait; null for a key that leads nowhere. */
export function stepFrom(lanes: readonly WaitLane[], chosen: WaitPlace | null, key: string): WaitPlace | null {
  const within = (lane: number) => Math.min(Math.max(lane, 0), lanes.length - 1);
  if (lanes.length === 0) return null;
  if (key === "Home") return { lane: chosen?.lane ?? 0, at: 0 };
  if (key === "End") {
    const lane = chosen?.lane ?? 0;
    return { lane, at: (lanes[lane]?.waits.length ?? 1) - 1 };
  }
  const step = STEPS[key];
  if (step === undefined) return null;
  if (chosen === null) return { lane: 0, at: 0 };
  const here = lanes[chosen.lane];
  const wait = here?.waits[chosen.at];
  if (here === undefined || wait === undefined) return { lane: 0, at: 0 };
  if (step[0] === 0)
    return { lane: chosen.lane, at: Math.min(Math.max(chosen.at + step[1], 0), here.waits.length - 1) };
  const lane = within(chosen.lane + step[0]);
  return { lane, at: lane === chosen.lane ? chosen.at : nearestWait(lanes[lane] as WaitLane, wait.end) };
}

/** `in read(), waited for another thread 180 ms`; `≈ 180 ms`, or `at most 180 ms`, where its length is not known. */
export function waitWords({ part, place, length: ns, isLengthKnown, isCut }: Wait): string {
  const what = part === "run_queue" ? "for the CPU" : partOf(part).waitedFor;
  const about = isLengthKnown ? "" : isCut ? "at most " : "≈ ";
  const length = `${about}${duration(ns / 1e9)}`;
  return `${place === "" ? "" : `in ${place}, `}waited${what === "" ? "" : ` ${what}`} ${length}`;
}

/** The same with who ended it, where that is known. */
export function waitLine(wait: Wait): string {
  return wait.waker === "" ? waitWords(wait) : `${waitWords(wait)}, woken by ${wait.waker}`;
}

/** The same with whose it was, how it began and when it ended. */
export function waitSentence(wait: Wait, fromMs: number, spanNs: number): string {
  const { thread, tid, state, cpu, value, length, isCut, waker } = wait;
  const isForOthers = isCut || value > SLACK * length;
  const weight = isForOthers ? `, stands for ${duration(value / 1e9)}` : "";
  const began = `${state === "" ? "" : `, ${stateWords(state)}`}${weight}`;
  const until = momentText(fromMs, wait.end, Math.min(spanNs, 1e9));
  const woken = waker === "" ? "" : `, woken by ${waker}`;
  return `${thread} (${tid}) ${waitWords(wait)}${began}, until ${until}${cpu === "" ? "" : ` on CPU ${cpu}`}${woken}`;
}

/** For the address: when it ended, Unix milliseconds, and its thread. */
export function waitText(wait: Wait, fromMs: number): string {
  return `${Number((fromMs + wait.end / 1e6).toFixed(3))}-${wait.tid}`;
}

/** Back from the address; null where there is no such wait. */
export function waitOfText(lanes: readonly WaitLane[], text: string, fromMs: number): WaitPlace | null {
  const dash = text.lastIndexOf("-");
  const lane = lanes.findIndex(({ tid }) => tid === text.slice(dash + 1));
  const found = lanes[lane];
  if (dash < 0 || found === undefined) return null;
  const at = found.waits.findIndex((wait) => waitText(wait, fromMs) === text);
  return at < 0 ? null : { lane, at };
}

/** What shows all of a wait, with as much again around it. */
export function aroundWait({ start, end }: Wait): Range {
  const length = Math.max(end - start, 1e6);
  return { from: start - length / 2, until: end + length / 2 };
}
