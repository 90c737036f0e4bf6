/**
 * What one row of a flamegraph draws. In: a tree, a depth, the visible range (in weight units) and the width in device
 * pixels. Out: runs of whole pixels from left to right. The cost depends on the pixels, not on the nodes: frames below
 * one pixel are drawn together as a run, and found past by bisection.
 */
import { parseSpan } from "../time/spans.ts";
import { distance, ROOT, type Tree } from "../tree/tree.ts";

export interface View {
  from: number;
  until: number;
}

export interface Run {
  /** Device pixels, `left` included and `right` excluded. */
  left: number;
  right: number;
  /** The frame, or the first of the frames that share the run. */
  node: number;
  /** False where the run stands for several frames that are too narrow to be drawn alone. */
  single: boolean;
}

export function viewOf(tree: Tree, focus: number): View {
  const from = tree.start[focus] as number;
  return { from, until: from + (tree.weight[focus] as number) };
}

/** The range of the same width around a position, within the limits. */
export function centred(view: View, limits: View, position: number): View {
  return moved(view, limits, position - (view.from + view.until) / 2);
}

export function moved(view: View, limits: View, by: number): View {
  const length = view.until - view.from;
  const from = Math.max(limits.from, Math.min(view.from + by, limits.until - length));
  return { from, until: from + length };
}

/** Never narrower than this part of the limits: beyond it the sums that edges are made of are no longer exact. */
const NARROWEST = 1e-9;

/** The range narrowed (a factor below 1) or widened around a position that stays where it is. */
export function scaled(view: View, limits: View, position: number, factor: number): View {
  const whole = limits.until - limits.from;
  const length = Math.min(whole, Math.max(whole * NARROWEST, (view.until - view.from) * factor));
  const part = (position - view.from) / (view.until - view.from);
  return moved({ from: position - part * length, until: position + (1 - part) * length }, limits, 0);
}

const MILLION = 1e6;

/**
 * A part of the limits as text, in millionths of their width; empty where it is all of them. A view that goes beyond
 * them, as before a zoom, is no part and no whole: its text is that of no address.
 */
export function partText(view: View, { from, until }: View): string {
  const digits = (position: number) => String(Number((((position - from) / (until - from)) * MILLION).toFixed(3)));
  const text = `${digits(view.from)}-${digits(view.until)}`;
  return text === `0-${MILLION}` || !(until > from) ? "" : text;
}

/** Back from text; all of the limits where it is none. */
export function partOf(text: string, limits: View): View {
  const span = parseSpan(text);
  if (span === null || span.until > MILLION) return limits;
  const at = (part: number) => limits.from + (part / MILLION) * (limits.until - limits.from);
  return { from: at(span.from), until: at(span.until) };
}

function endOf({ start, weight }: Tree, node: number): number {
  return (start[node] as number) + (weight[node] as number);
}

/** The first entry of the level that ends behind `position`; `behind` where none before it does. */
function endingBehind(tree: Tree, level: Int32Array, position: number, first: number, behind: number): number {
  let a = first;
  let b = behind;
  while (a < b) {
    const middle = (a + b) >>> 1;
    if (endOf(tree, level[middle] as number) > position) b = middle;
    else a = middle + 1;
  }
  return a;
}

export function firstEndingBehind(tree: Tree, level: Int32Array, position: number): number {
  return endingBehind(tree, level, position, 0, level.length);
}

/** The first entry of the level that begins at `position` or behind it; its length where none does. */
export function firstBeginningAt({ start }: Tree, level: Int32Array, position: number): number {
  let a = 0;
  let b = level.length;
  while (a < b) {
    const middle = (a + b) >>> 1;
    if ((start[level[middle] as number] as number) >= position) b = middle;
    else a = middle + 1;
  }
  return a;
}

/**
 * `firstEndingBehind` from `low` on. Behind the slivers of a pixel it is near: it is come to in strides that double.
 */
export function nextEndingBehind(tree: Tree, level: Int32Array, position: number, low: number): number {
  let from = low;
  let stride = 1;
  while (from + stride < level.length && endOf(tree, level[from + stride - 1] as number) <= position) {
    from += stride;
    stride *= 2;
  }
  return endingBehind(tree, level, position, from, Math.min(from + stride, level.length));
}

/** The pixel of a row that a frame begins in. */
function pixelOf(place: number, width: number): number {
  return Math.min(width - 1, Math.max(0, Math.round(place)));
}

export function rowRuns(tree: Tree, depth: number, view: View, width: number): Run[] {
  const level = tree.levels[depth];
  const runs: Run[] = [];
  const span = view.until - view.from;
  if (level === undefined || !(span > 0) || width < 1) return runs;
  const scale = width / span;
  // Edges of neighbours are sums in another order: what differs by less than a millionth of a pixel is the same edge.
  const slack = 1e-6 / scale;
  let i = firstEndingBehind(tree, level, view.from + slack);
  const behind = firstBeginningAt(tree, level, view.until - slack);
  while (i < behind) {
    const node = level[i] as number;
    const begin = tree.start[node] as number;
    const left = Math.max(0, Math.round((begin - view.from) * scale));
    const right = Math.min(width, Math.round((begin + (tree.weight[node] as number) - view.from) * scale));
    if (right > left) {
      push(runs, { left, right, node, single: true });
      i++;
      continue;
    }
    if ((tree.weight[node] as number) <= 0) {
      i++;
      continue;
    }
    const pixel = Math.min(left, width - 1);
    push(runs, { left: pixel, right: pixel + 1, node, single: false });
    // Everything that ends before this pixel's own right rounding edge is in the same pixel.
    i = nextEndingBehind(tree, level, view.from + (pixel + 0.5) / scale, i + 1);
  }
  return runs;
}

/**
 * A sliver continues the run before it where they touch. Where it shares a pixel with a frame of some pixels, that one
 * spares it: nothing else would show it. A frame of a single pixel has none to spare, and `hitAt` counts what it stands
 * for.
 */
function push(runs: Run[], run: Run): void {
  const last = runs[runs.length - 1];
  if (last === undefined || last.right <= run.left) {
    if (last === undefined || run.single || last.single || last.right < run.left) runs.push(run);
    else last.right = run.right;
    return;
  }
  if (!run.single) {
    // On the last pixel, where all is that begins behind it.
    if (!last.single || last.right - last.left === 1) return;
    last.right = run.left;
  } else if (run.right > last.right) run.left = last.right;
  else if (last.left < run.left) last.right = run.left;
  else runs.pop();
  runs.push(run);
}

/** What a run of frames that are too narrow to be drawn alone stands for. */
export interface Sliver {
  frames: number;
  samples: number;
  baseSamples: number;
  widest: number;
}

/** What lies at a pixel of a row: one frame, or slivers; null beside all frames. */
export function hitAt(
  tree: Tree,
  depth: number,
  view: View,
  width: number,
  pixel: number,
): { node: number; sliver: Sliver | null } | null {
  const level = tree.levels[depth];
  const run = rowRuns(tree, depth, view, width).find(({ left, right }) => pixel >= left && pixel < right);
  if (run === undefined || level === undefined) return null;
  if (run.single && run.right - run.left > 1) return { node: run.node, sliver: null };
  const scale = width / (view.until - view.from);
  // A pixel has the colour of one frame, and stands for all that begin in it and are drawn no wider.
  const sliver: Sliver = { frames: 0, samples: 0, baseSamples: 0, widest: run.node };
  for (let i = firstEndingBehind(tree, level, view.from + (run.left - 1) / scale); i < level.length; i++) {
    const node = level[i] as number;
    const begin = (tree.start[node] as number) - view.from;
    const place = pixelOf(begin * scale, width);
    if (place >= run.right || begin + view.from >= view.until) break;
    const weight = tree.weight[node] as number;
    const isWider = Math.min(width, Math.round((begin + weight) * scale)) - place > 1;
    if (weight <= 0 || (node !== run.node && (place < run.left || isWider))) continue;
    sliver.frames++;
    sliver.samples += tree.total[node] as number;
    sliver.baseSamples += tree.diff?.baseTotal[node] ?? 0;
    if (weight > (tree.weight[sliver.widest] as number)) sliver.widest = node;
  }
  return { node: sliver.widest, sliver: sliver.frames > 1 ? sliver : null };
}

/** Rows from `first` to `last`, both included. */
export interface Rows {
  first: number;
  last: number;
  /** Rows beyond them, of which every frame is thinner. */
  thin: number;
}

/**
 * The rows that have a frame of at least `pixels` width within the view, and those of the callers of what is zoomed.
 */
export function rowsInSight(tree: Tree, focus: number, width: number, pixels: number): Rows {
  const least = ((tree.weight[focus] as number) / Math.max(1, width)) * pixels;
  const at = tree.depth[focus] as number;
  const rows = { first: Math.min(tree.rootRow, at), last: Math.max(tree.rootRow, at), thin: 0 };
  for (let i = focus; i < (tree.end[focus] as number); ) {
    if ((tree.weight[i] as number) < least || (tree.weight[i] as number) <= 0) {
      i = tree.end[i] as number;
      continue;
    }
    const row = tree.depth[i] as number;
    if (row > rows.last) rows.last = row;
    if (row < rows.first) rows.first = row;
    i++;
  }
  let [first, last] = [rows.first, rows.last];
  for (let i = focus; i < (tree.end[focus] as number); i++) {
    const row = tree.depth[i] as number;
    if (row > last) last = row;
    else if (row < first) first = row;
  }
  return { ...rows, thin: last - rows.last + rows.first - first };
}

export type Step = "up" | "down" | "left" | "right" | "first" | "last";

/** Where a key takes the selection: to the caller, to the widest callee, to the neighbours on the same row. */
export function neighbour(tree: Tree, node: number, step: Step, focus: number): number {
  const parent = tree.parent[node] as number;
  const floor = distance(tree, focus);
  if (step === "up") return parent < 0 ? node : parent;
  if (step === "down") return widestChild(tree, node) ?? node;
  const depth = tree.depth[node] as number;
  if (distance(tree, node) <= floor) return node;
  const level = tree.levels[depth] as Int32Array;
  const first = bisect(level, focus);
  const behind = bisect(level, tree.end[focus] as number);
  const at = bisect(level, node);
  const direction = step === "left" || step === "last" ? -1 : 1;
  const begin = step === "first" ? first : step === "last" ? behind - 1 : at + direction;
  for (let i = begin; i >= first && i < behind; i += direction) {
    const candidate = level[i] as number;
    if ((tree.weight[candidate] as number) > 0) return candidate;
  }
  return node;
}

function widestChild(tree: Tree, node: number): number | null {
  let best: number | null = null;
  for (let i = node + 1; i < (tree.end[node] as number); i = tree.end[i] as number) {
    const weight = tree.weight[i] as number;
    if (weight > 0 && (best === null || weight > (tree.weight[best] as number))) best = i;
  }
  return best;
}

/** The first place of the ascending list that is not below `value`. */
function bisect(list: Int32Array, value: number): number {
  let a = 0;
  let b = list.length;
  while (a < b) {
    const middle = (a + b) >>> 1;
    if ((list[middle] as number) < value) a = middle + 1;
    else b = middle;
  }
  return a;
}

/** Whether `node` lies in the subtree of `top` or on the way from the root to it: what a zoomed view still shows. */
export function isVisible(tree: Tree, node: number, focus: number): boolean {
  const within = node >= focus && node < (tree.end[focus] as number);
  return within || (node <= focus && (tree.end[node] as number) >= (tree.end[focus] as number)) || node === ROOT;
}
