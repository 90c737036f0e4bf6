/**
 * The tree behind a flamegraph. In: the columns of an answer (pre-order). Out: typed columns, with for every node its
 * depth, the end of its subtree, its left edge and its weight (the width's unit), and for every depth its nodes from
 * left to right. Built once an answer in one pass; nothing here changes afterwards.
 */
import type { DiffAnswer, DiffColumns, FlamegraphAnswer, Measured, TreeColumns } from "../../api/types.ts";
import type { Change } from "../colour.ts";
import { kindsOfAnswer } from "./frameKey.ts";
import { type Scale, scaleOf } from "./scale.ts";
import { atOnce, STEP, type Steps } from "./slices.ts";

/**
 * What a frame's width stands for in a difference: both sides added up (so that vanished frames show), or one of them.
 */
export type Width = "both" | "before" | "after";

export interface DiffData {
  width: Width;
  /** What of a frame is compared, see `isOfSelf`. */
  measure: Measured;
  /** Of the intervals. */
  confidence: number;
  /** Samples of side A. */
  baseTotal: Float64Array;
  baseSelf: Float64Array;
  /** Both sides in the unit of the normalisation. */
  baseNorm: Float64Array;
  norm: Float64Array;
  baseSelfNorm: Float64Array;
  selfNorm: Float64Array;
  delta: Float64Array;
  low: Float64Array;
  high: Float64Array;
  state: Uint8Array;
  strength: Float64Array;
  states: readonly string[];
  /** What frames that a transform has put together are judged by. */
  scale: Scale;
}

/** What a node is, one entry a node in pre-order. */
export interface Frames {
  parent: Int32Array;
  name: Int32Array;
  module: Int32Array;
  kind: Uint8Array;
  inlined: Uint8Array;
  /** Samples, of side B in a difference. */
  total: Float64Array;
  self: Float64Array;
}

export interface Tree extends Frames {
  size: number;
  strings: readonly string[];
  kinds: readonly string[];
  /** The row: 0 is the root's, except in a sandwich, whose root has its callers in the rows above. */
  depth: Int32Array;
  /** The first node behind the subtree of this one. */
  end: Int32Array;
  weight: Float64Array;
  start: Float64Array;
  levels: Int32Array[];
  /** Some frames were folded by the server, so that a search in this tree is a lower bound. */
  trimmed: boolean;
  /** `inverted`: from the leaf to its callers. `sandwich`: one function, its callees below and its callers above. */
  shape: "upright" | "inverted" | "sandwich";
  /** The row of the root. */
  rootRow: number;
  /** The first node of a sandwich's callers; the size of the tree where there are none. */
  callersFrom: number;
  diff: DiffData | null;
}

export const ROOT = 0;
/** The state of what was not shown to differ. */
const SAME = "same";

/** An answer that contradicts itself. */
export class BadTree extends Error {}

function column(nodes: TreeColumns, name: keyof DiffColumns, size: number): number[] {
  const values = (nodes as DiffColumns)[name];
  if (!Array.isArray(values) || values.length !== size) {
    throw new BadTree(`the tree's column ${name} has ${values?.length ?? "no"} entries, not ${size}`);
  }
  return values;
}

function checked(values: number[], limit: number, name: string): Int32Array {
  const out = Int32Array.from(values);
  for (const value of out) {
    if (value < 0 || value >= limit) throw new BadTree(`the tree's column ${name} points at ${value} of ${limit}`);
  }
  return out;
}

export function treeOf(answer: Pick<FlamegraphAnswer, "nodes" | "strings" | "kinds" | "languages">): Tree {
  const names = { strings: answer.strings, kinds: kindsOfAnswer(answer) };
  const frames = framesOf(answer.nodes, names);
  return assemble(frames, names, frames.total, null);
}

export function diffTreeOf(answer: DiffAnswer, width: Width): Tree {
  const nodes = answer.nodes;
  const size = nodes.parent.length;
  const floats = (name: keyof DiffColumns) => Float64Array.from(column(nodes, name, size));
  const names = { strings: answer.strings, kinds: kindsOfAnswer(answer) };
  const frames = framesOf(nodes, names);
  const hasBoth = answer.base.samples > 0 && answer.comparison.samples > 0;
  const judged = {
    baseTotal: floats("base_total"),
    total: frames.total,
    baseNorm: floats("base_norm"),
    norm: floats("norm"),
    baseSelf: floats("base_self"),
    self: frames.self,
    // Nothing is more or less than a side without samples, which may not have been there at all.
    state: hasBoth
      ? Uint8Array.from(checked(column(nodes, "state", size), answer.states.length, "state"))
      : new Uint8Array(size).fill(answer.states.indexOf(SAME)),
  };
  const diff: DiffData = {
    width,
    measure: answer.measure,
    confidence: answer.confidence,
    ...judged,
    delta: floats("delta"),
    low: floats("low"),
    high: floats("high"),
    baseSelfNorm: floats("base_self_norm"),
    selfNorm: floats("self_norm"),
    strength: hasBoth ? floats("strength") : new Float64Array(size),
    states: answer.states,
    scale: scaleOf(judged, answer),
  };
  return assemble(frames, answer, widths(diff), diff);
}

/**
 * Whether the verdict on a frame of a difference is about what the frame itself has. Where stacks are turned round,
 * that is what a frame has in all: the samples that end in the function whose way to the root it is on.
 */
export function isOfSelf(
  { diff, shape, callersFrom }: Pick<Tree, "diff" | "shape" | "callersFrom">,
  node: number,
): boolean {
  return diff?.measure === "self" && shape !== "inverted" && node < callersFrom;
}

/** What a frame's width stands for in a difference. */
export function widths({ width, baseNorm, norm }: Pick<DiffData, "width" | "baseNorm" | "norm">): Float64Array {
  const weight = new Float64Array(norm.length);
  for (let i = 0; i < weight.length; i++) {
    const before = width === "after" ? 0 : (baseNorm[i] as number);
    const after = width === "before" ? 0 : (norm[i] as number);
    weight[i] = before + after;
  }
  return weight;
}

/** The same difference with other widths: its rows and subtrees are the same, its left edges are others. */
export function withWidth(tree: Tree, width: Width): Tree {
  if (tree.diff === null || tree.diff.width === width) return tree;
  const diff = { ...tree.diff, width };
  const weight = widths(diff);
  return { ...tree, weight, start: leftEdges(tree.parent, weight, tree.callersFrom), diff };
}

function leftEdges(parent: Int32Array, weight: Float64Array, callersFrom: number): Float64Array {
  const start = new Float64Array(parent.length);
  /** Where the next callee of each frame begins. */
  const next = new Float64Array(parent.length);
  for (let i = 1; i < parent.length; i++) {
    const p = parent[i] as number;
    if (i === callersFrom) next[0] = 0;
    start[i] = next[p] as number;
    next[i] = start[i] as number;
    next[p] = (next[p] as number) + (weight[i] as number);
  }
  return start;
}

function framesOf(nodes: TreeColumns, { strings, kinds }: Pick<Tree, "strings" | "kinds">): Frames {
  const size = nodes.parent.length;
  if (size === 0) throw new BadTree("the tree has no root");
  const parent = Int32Array.from(nodes.parent);
  for (let i = 1; i < size; i++) {
    const p = parent[i] as number;
    if (p < 0 || p >= i) throw new BadTree(`node ${i} of the tree comes before its parent ${p}`);
  }
  return {
    parent,
    name: checked(column(nodes, "name", size), strings.length, "name"),
    module: checked(column(nodes, "module", size), strings.length, "module"),
    kind: Uint8Array.from(checked(column(nodes, "kind", size), kinds.length, "kind")),
    inlined: Uint8Array.from(column(nodes, "inlined", size)),
    total: Float64Array.from(column(nodes, "total", size)),
    self: Float64Array.from(column(nodes, "self", size)),
  };
}

function assemble(...of: Parameters<typeof assembling>): Tree {
  return atOnce(assembling(...of));
}

/** Lays a tree out: depths, left edges, rows. The nodes from `callersFrom` on stand above the root. */
export function* assembling(
  frames: Frames,
  { strings, kinds }: { strings: readonly string[]; kinds: readonly string[] },
  weight: Float64Array,
  diff: DiffData | null,
  shape: Tree["shape"] = "upright",
  callersFrom: number = frames.parent.length,
): Steps<Tree> {
  const { parent, kind } = frames;
  const size = parent.length;
  const depth = new Int32Array(size);
  const end = new Int32Array(size);
  const counts: number[] = [];
  let rootRow = 0;
  for (let i = 0; i < size; i++) {
    end[i] = i + 1;
    if (i === 0) continue;
    if ((i & STEP) === 0) yield;
    const d = (depth[parent[i] as number] as number) + (i < callersFrom ? 1 : -1);
    depth[i] = d;
    if (-d > rootRow) rootRow = -d;
  }
  yield;
  const start = leftEdges(parent, weight, callersFrom);
  yield;
  for (let i = size - 1; i > 0; i--) {
    const p = parent[i] as number;
    if ((end[i] as number) > (end[p] as number)) end[p] = end[i] as number;
  }
  yield;
  for (let i = 0; i < size; i++) {
    const row = (depth[i] as number) + rootRow;
    depth[i] = row;
    counts[row] = (counts[row] ?? 0) + 1;
  }
  yield;
  const levels = counts.map((count) => new Int32Array(count));
  const filled = new Int32Array(levels.length);
  for (let i = 0; i < size; i++) {
    const row = depth[i] as number;
    (levels[row] as Int32Array)[filled[row] as number] = i;
    filled[row] = (filled[row] as number) + 1;
  }
  const trimmedKind = kinds.indexOf("trimmed");
  return {
    ...frames,
    size,
    strings,
    kinds,
    depth,
    end,
    weight,
    start,
    levels,
    trimmed: trimmedKind >= 0 && kind.includes(trimmedKind),
    shape,
    rootRow,
    callersFrom,
    diff,
  };
}

/** How many rows lie between a node and the root. */
export function distance(tree: Tree, node: number): number {
  return Math.abs((tree.depth[node] as number) - tree.rootRow);
}

export function frameName(tree: Tree, node: number): string {
  return tree.strings[tree.name[node] as number] as string;
}

export function moduleName(tree: Tree, node: number): string {
  return tree.strings[tree.module[node] as number] as string;
}

export function kindName(tree: Tree, node: number): string {
  return tree.kinds[tree.kind[node] as number] as string;
}

/** What the server, or a transform, says of a frame's change; of one window nothing. */
export function changeOf(tree: Tree, node: number): Change {
  return (tree.diff?.states[tree.diff.state[node] as number] ?? "same") as Change;
}

/** From the root's child down to the node itself; the root alone gives an empty path. */
export function ancestors(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let i = node; i > ROOT; i = tree.parent[i] as number) path.push(i);
  return path.reverse();
}
