/**
 * One CPU's or thread's samples in order, as a flame chart. In: the samples of an answer. Out: a tree whose frames
 * stand for a time in which the same stack was met again and again: `start` and `weight` are nanoseconds from the
 * answer's start, idle times are gaps between them. Below the root (all of the time) stands who ran: the thread on a
 * CPU, the CPU under a thread. Pure; one pass over the samples.
 */
import type { TimelineAnswer, TimelineSamples } from "../../api/types.ts";
import { clockMs } from "../time/time.ts";
import { kindsOfAnswer } from "../tree/frameKey.ts";
import { BadTree, ROOT, type Tree } from "../tree/tree.ts";
import { firstEndingBehind } from "./layout.ts";
import { matchesOf, namesOf, type Search, search, type Wanted } from "./search.ts";

/** Samples further apart than so many periods have an idle time between them: timers fire late by parts of one. */
const JITTER = 1.5;
/** No view is shorter: a millisecond. */
const LEAST_NS = 1e6;

export interface Chart {
  tree: Tree;
  samples: TimelineSamples;
  /** Of each sample the innermost frame's box. */
  boxOf: Int32Array;
  /** Up to where the answer reaches, in nanoseconds. */
  extentNs: number;
  complete: boolean;
}

export interface Range {
  from: number;
  until: number;
}

/** What a selection holds that cannot be drawn as one lane; each with its samples, most first. */
export interface Lanes {
  nodes: [string, number][];
  cpus: [string, number][];
  threads: { tid: string; thread: string; samples: number }[];
}

function counted<K>(values: readonly K[]): [K, number][] {
  const counts = new Map<K, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

export function lanesOf(samples: TimelineSamples): Lanes {
  const name = new Map<string, string>();
  const ids = samples.tid.map((tid, i) => {
    const id = String(tid ?? "");
    name.set(id, samples.thread[i] as string);
    return id;
  });
  return {
    nodes: counted(samples.node),
    cpus: counted(samples.cpu.map((cpu) => String(cpu ?? ""))),
    threads: counted(ids).map(([tid, count]) => ({ tid, thread: name.get(tid) as string, samples: count })),
  };
}

/** One lane: one CPU of one node, or one thread. */
export function isOneLane({ nodes, cpus, threads }: Lanes): boolean {
  return nodes.length <= 1 && (cpus.length <= 1 || threads.length <= 1);
}

/** Until when each sample counts: to the next one, where that is not later than timers are late. */
function endsOf({ offset_ns: offsets, value_ns: values }: TimelineSamples): Float64Array {
  const ends = new Float64Array(offsets.length);
  for (let i = 0; i < offsets.length; i++) {
    const [at, period] = [offsets[i] as number, Math.max(values[i] as number, 1)];
    const next = offsets[i + 1];
    ends[i] = next !== undefined && next - at <= period * JITTER ? next : at + period;
  }
  return ends;
}

class Boxes {
  readonly parent: number[] = [];
  readonly name: number[] = [];
  readonly module: number[] = [];
  readonly kind: number[] = [];
  readonly inlined: number[] = [];
  readonly start: number[] = [];
  readonly weight: number[] = [];
  readonly end: number[] = [];
  readonly depth: number[] = [];
  readonly total: number[] = [];
  readonly self: number[] = [];
  readonly counts: number[] = [];

  open(parent: number, depth: number, start: number): number {
    const id = this.parent.length;
    this.parent.push(parent);
    this.depth.push(depth);
    this.start.push(start);
    for (const column of [
      this.name,
      this.module,
      this.kind,
      this.inlined,
      this.weight,
      this.end,
      this.total,
      this.self,
    ])
      column.push(0);
    this.counts[depth] = (this.counts[depth] ?? 0) + 1;
    return id;
  }

  close(id: number, until: number): void {
    this.weight[id] = until - (this.start[id] as number);
    this.end[id] = this.parent.length;
  }
}

export function chartOf(answer: TimelineAnswer): Chart {
  const { samples, nodes } = answer;
  const ends = endsOf(samples);
  const strings = [...answer.strings];
  const kinds = kindsOfAnswer(answer);
  const rootKind = Math.max(kinds.indexOf("root"), 0);
  const byThread = new Set(samples.tid).size === 1 && new Set(samples.cpu).size > 1;
  const names = new Map<string, number>();
  const nameId = (text: string) => {
    const known = names.get(text);
    if (known !== undefined) return known;
    names.set(text, strings.length);
    return strings.push(text) - 1;
  };
  const whoRan = (i: number) =>
    nameId(byThread ? `CPU ${samples.cpu[i] ?? "?"}` : `${samples.thread[i] || "?"} (${samples.tid[i] ?? "?"})`);
  const nothing = strings.indexOf("") >= 0 ? strings.indexOf("") : nameId("");

  const paths = new Map<number, Int32Array>();
  const pathOf = (leaf: number): Int32Array => {
    const known = paths.get(leaf);
    if (known !== undefined) return known;
    const path: number[] = [];
    for (let node = leaf; node > 0; ) {
      path.push(node);
      const parent = nodes.parent[node];
      if (parent === undefined || parent >= node) throw new BadTree(`node ${node} of the tree comes before its parent`);
      node = parent;
    }
    const made = Int32Array.from(path.reverse());
    paths.set(leaf, made);
    return made;
  };

  const boxes = new Boxes();
  const all = boxes.open(-1, 0, 0);
  boxes.name[all] = nameId("all");
  boxes.kind[all] = rootKind;
  boxes.module[all] = nothing;
  const boxOf = new Int32Array(samples.offset_ns.length);
  /** Open boxes below the root and what each stands for: who ran, then nodes of the answer's tree. */
  let open: number[] = [];
  let keys: number[] = [];
  let behind = 0;
  const closeDownTo = (left: number) => {
    for (let depth = open.length - 1; depth >= left; depth--) boxes.close(open[depth] as number, behind);
    open = open.slice(0, left);
    keys = keys.slice(0, left);
  };
  for (let i = 0; i < boxOf.length; i++) {
    const at = samples.offset_ns[i] as number;
    const path = pathOf(samples.stack[i] as number);
    const who = whoRan(i);
    let common = 0;
    if (behind >= at && keys[0] === who) {
      common = 1;
      while (common <= path.length && common < keys.length && keys[common] === path[common - 1]) common++;
    }
    closeDownTo(common);
    for (let depth = common; depth <= path.length; depth++) {
      const node = depth === 0 ? -1 : (path[depth - 1] as number);
      const box = boxes.open(depth === 0 ? all : (open[depth - 1] as number), depth + 1, at);
      boxes.name[box] = node < 0 ? who : (nodes.name[node] as number);
      boxes.module[box] = node < 0 ? nothing : (nodes.module[node] as number);
      boxes.kind[box] = node < 0 ? rootKind : (nodes.kind[node] as number);
      boxes.inlined[box] = node < 0 ? 0 : (nodes.inlined[node] as number);
      open.push(box);
      keys.push(node < 0 ? who : node);
    }
    for (const box of open) (boxes.total[box] as number)++;
    const leaf = open[open.length - 1] as number;
    (boxes.self[leaf] as number)++;
    boxOf[i] = leaf;
    behind = ends[i] as number;
  }
  closeDownTo(0);
  const window = Math.max((answer.until - answer.from) * 1e6, LEAST_NS);
  const extentNs = answer.complete || boxOf.length === 0 ? window : behind;
  boxes.close(all, extentNs);
  boxes.total[all] = boxOf.length;
  return { tree: treeOfBoxes(boxes, strings, kinds), samples, boxOf, extentNs, complete: answer.complete };
}

/**
 * The same, where what stands beside the samples reaches further than they do, or is all that a part of the answer has.
 */
export function reaching(chart: Chart, ns: number): Chart {
  const isAlone = !chart.complete && chart.boxOf.length === 0 && ns > 0;
  if (ns <= chart.extentNs && !isAlone) return chart;
  chart.tree.weight[ROOT] = ns;
  return { ...chart, extentNs: ns };
}

function treeOfBoxes(boxes: Boxes, strings: string[], kinds: string[]): Tree {
  const size = boxes.parent.length;
  const levels = boxes.counts.map((count) => new Int32Array(count));
  const filled = new Int32Array(levels.length);
  for (let i = 0; i < size; i++) {
    const depth = boxes.depth[i] as number;
    (levels[depth] as Int32Array)[filled[depth] as number] = i;
    filled[depth] = (filled[depth] as number) + 1;
  }
  return {
    size,
    strings,
    kinds,
    parent: Int32Array.from(boxes.parent),
    name: Int32Array.from(boxes.name),
    module: Int32Array.from(boxes.module),
    kind: Uint8Array.from(boxes.kind),
    inlined: Uint8Array.from(boxes.inlined),
    total: Float64Array.from(boxes.total),
    self: Float64Array.from(boxes.self),
    depth: Int32Array.from(boxes.depth),
    end: Int32Array.from(boxes.end),
    weight: Float64Array.from(boxes.weight),
    start: Float64Array.from(boxes.start),
    levels,
    trimmed: false,
    shape: "upright",
    rootRow: 0,
    callersFrom: size,
    diff: null,
  };
}

/** Boxes of frames whose name matches; who ran is no frame. And which samples have one. */
export function hitsOf({ tree, boxOf }: Chart, wanted: Wanted): { search: Search; samples: number[] } {
  const found = search(tree, matchesOf(tree, namesOf(tree), wanted));
  const within = new Uint8Array(tree.size);
  for (let i = 1; i < tree.size; i++) within[i] = found.hits.has(i) ? 1 : (within[tree.parent[i] as number] as number);
  const samples: number[] = [];
  boxOf.forEach((box, i) => {
    if (within[box] === 1) samples.push(i);
  });
  return { search: found, samples };
}

/** Who ran when a box began, as labels of a selector have it. */
export interface Who {
  node: string;
  cpu: string;
  tid: string;
  thread: string;
}

export function whoIn({ tree, samples, boxOf }: Chart, box: number): Who {
  const i = Math.min(sampleFrom(samples, tree.start[box] as number), boxOf.length - 1);
  const text = (column: readonly (string | number | null)[]) => String(column[i] ?? "");
  return { node: text(samples.node), cpu: text(samples.cpu), tid: text(samples.tid), thread: text(samples.thread) };
}

/** A box for the address: a moment in its middle (Unix milliseconds) and its row. */
export function boxPlace({ tree }: Chart, fromMs: number, box: number): string {
  const middle = (tree.start[box] as number) + (tree.weight[box] as number) / 2;
  return `${Number((fromMs + middle / 1e6).toFixed(3))}-${tree.depth[box] as number}`;
}

/** Back from the address; null where this chart has no box there. */
export function boxAtPlace({ tree }: Chart, fromMs: number, text: string): number | null {
  const read = /^(\d{1,14}(?:\.\d{1,3})?)-(\d{1,5})$/.exec(text);
  return read === null ? null : nodeAt(tree, Number(read[2]), (Number(read[1]) - fromMs) * 1e6);
}

/** Threads of one name of one service, by the one that had most samples. */
export interface Ran {
  service: string;
  thread: string;
  tid: string;
  samples: number;
}

/**
 * Which other threads were on the CPU up to `beforeNs` before samples with a hit. Samples with a hit are left out, and
 * so are those of the hit's own thread; each sample counts once, most first. `found`: the samples with a hit, in order.
 */
export function ranBefore({ samples }: Chart, found: readonly number[], beforeNs: number): Ran[] {
  const times = samples.offset_ns;
  const tidOf = (i: number) => String(samples.tid[i] ?? "");
  const byTid = new Map<string, Ran>();
  // Backwards, so that the next hit is known, and the next one of a thread other than that hit's.
  let next: number | null = null;
  let nextOfOther: number | null = null;
  let left = found.length;
  for (let i = (found.at(-1) ?? -1) + 1; i-- > 0; ) {
    const tid = tidOf(i);
    if (found[left - 1] === i) {
      left--;
      if (next !== null && tidOf(next) !== tid) nextOfOther = next;
      next = i;
      continue;
    }
    const hit: number | null = next !== null && tidOf(next) !== tid ? next : nextOfOther;
    if (hit === null || (times[hit] as number) - (times[i] as number) > beforeNs) continue;
    const [service, thread] = [samples.service[i] ?? "", samples.thread[i] ?? ""];
    const known = byTid.get(tid) ?? { service, thread, tid, samples: 0 };
    known.samples++;
    byTid.set(tid, known);
  }
  const byName = new Map<string, Ran>();
  for (const one of [...byTid.values()].reverse().sort((a, b) => b.samples - a.samples)) {
    const name = JSON.stringify([one.service, one.thread]);
    const known = byName.get(name);
    if (known === undefined) byName.set(name, { ...one });
    else known.samples += one.samples;
  }
  return [...byName.values()].sort((a, b) => b.samples - a.samples);
}

/** Samples that tell how far they usually are apart. */
const TELLING = 1_000;

/** Milliseconds from one sample to the next, usually; null where there is none. */
export function usualPeriodMs({ samples }: Chart): number | null {
  const first = samples.value_ns.slice(0, TELLING).sort((a, b) => a - b);
  const middle = first[Math.floor(first.length / 2)];
  return middle === undefined ? null : Math.round(middle / 1e6);
}

/** The first sample not before a time; as many as there are when all are before it. */
export function sampleFrom(samples: TimelineSamples, ns: number): number {
  let [a, b] = [0, samples.offset_ns.length];
  while (a < b) {
    const middle = (a + b) >>> 1;
    if ((samples.offset_ns[middle] as number) < ns) a = middle + 1;
    else b = middle;
  }
  return a;
}

/** A view of this length or more within the extent, as near to what was wanted as can be. */
export function clamped({ from, until }: Range, extentNs: number): Range {
  const length = Math.min(Math.max(until - from, LEAST_NS), extentNs);
  const begin = Math.min(Math.max(from, 0), extentNs - length);
  return { from: begin, until: begin + length };
}

/** `factor` below 1 zooms in; what is at `part` of the width stays where it is. */
export function zoomed({ from, until }: Range, factor: number, part: number, extentNs: number): Range {
  const length = Math.min(Math.max((until - from) * factor, LEAST_NS), extentNs);
  const fixed = from + (until - from) * part;
  return clamped({ from: fixed - length * part, until: fixed + length * (1 - part) }, extentNs);
}

export function panned({ from, until }: Range, byNs: number, extentNs: number): Range {
  return clamped({ from: from + byNs, until: until + byNs }, extentNs);
}

/** The same length around a moment, where that is not in sight. */
export function showing(range: Range, ns: number, extentNs: number): Range {
  if (ns >= range.from && ns <= range.until) return range;
  const half = (range.until - range.from) / 2;
  return clamped({ from: ns - half, until: ns + half }, extentNs);
}

/** The depth to which stacks in sight reach. */
export function deepestWithin({ tree, boxOf, samples }: Chart, { from, until }: Range): number {
  let deepest = 1;
  for (
    let i = Math.max(sampleFrom(samples, from) - 1, 0);
    i < boxOf.length && (samples.offset_ns[i] as number) < until;
    i++
  ) {
    deepest = Math.max(deepest, tree.depth[boxOf[i] as number] as number);
  }
  return deepest;
}

/** `12:04:05.123`, or finer where the view is: a moment of the chart on the clock. */
export function momentText(fromMs: number, ns: number, spanNs: number): string {
  const ms = fromMs + ns / 1e6;
  if (spanNs >= 1e7) return clockMs(ms);
  return `${clockMs(ms)}${String(Math.floor((ms % 1) * 1000)).padStart(3, "0")}`;
}

/** What shows all of a box. */
export function fitted({ tree, extentNs }: Chart, box: number): Range {
  const from = tree.start[box] as number;
  return zoomed({ from, until: from + (tree.weight[box] as number) }, 1, 0.5, extentNs);
}

/**
 * The box of the next sample with what is looked for, or of the one before, from a moment on; behind the last one comes
 * the first. Null where none has it.
 */
export function hitBeside(
  { tree, samples, boxOf }: Chart,
  { hits }: Search,
  found: readonly number[],
  moment: number,
  direction: 1 | -1,
): number | null {
  const times = samples.offset_ns;
  const next =
    direction === 1
      ? found.find((sample) => (times[sample] as number) > moment)
      : found.findLast((sample) => (times[sample] as number) < moment);
  const sample = next ?? (direction === 1 ? found[0] : found[found.length - 1]);
  if (sample === undefined) return null;
  let at = boxOf[sample] as number;
  while (at > ROOT && !hits.has(at)) at = tree.parent[at] as number;
  return at;
}

/** The frame at a position of a row, or null beside all frames. */
export function nodeAt(tree: Tree, depth: number, position: number): number | null {
  const level = tree.levels[depth];
  if (level === undefined) return null;
  const node = level[firstEndingBehind(tree, level, position)];
  if (node === undefined || (tree.start[node] as number) > position) return null;
  return node;
}
