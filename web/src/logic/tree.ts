/**
 * The tree behind a flamegraph. In: the columns of an answer (pre-order). Out: typed columns, with for every node its
 * depth, the end of its subtree, its left edge and its weight (the width's unit), and for every depth its nodes from
 * left to right. Built once an answer in one pass; nothing here changes afterwards.
 */
import type { DiffAnswer, DiffColumns, FlamegraphAnswer, TreeColumns } from "../api/types.ts";

/** What a frame's width stands for in a difference: both sides added up (so that vanished frames show), or one of them. */
export type Width = "both" | "before" | "after";

export interface DiffData {
  baseTotal: Float64Array;
  baseSelf: Float64Array;
  baseNorm: Float64Array;
  norm: Float64Array;
  delta: Float64Array;
  low: Float64Array;
  high: Float64Array;
  baseSelfNorm: Float64Array;
  selfNorm: Float64Array;
  state: Uint8Array;
  strength: Float64Array;
  states: readonly string[];
}

export interface Tree {
  size: number;
  strings: readonly string[];
  kinds: readonly string[];
  parent: Int32Array;
  name: Int32Array;
  module: Int32Array;
  kind: Uint8Array;
  inlined: Uint8Array;
  /** Samples, of side B in a difference. */
  total: Float64Array;
  self: Float64Array;
  depth: Int32Array;
  /** The first node behind the subtree of this one. */
  end: Int32Array;
  weight: Float64Array;
  start: Float64Array;
  levels: Int32Array[];
  /** Some frames were folded by the server, so that a search in this tree is a lower bound. */
  trimmed: boolean;
  diff: DiffData | null;
}

export const ROOT = 0;

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

export function treeOf(answer: FlamegraphAnswer): Tree {
  return build(answer.nodes, answer.strings, answer.kinds, Float64Array.from(answer.nodes.total), null);
}

export function diffTreeOf(answer: DiffAnswer, width: Width): Tree {
  const nodes = answer.nodes;
  const size = nodes.parent.length;
  const floats = (name: keyof DiffColumns) => Float64Array.from(column(nodes, name, size));
  const diff: DiffData = {
    baseTotal: floats("base_total"),
    baseSelf: floats("base_self"),
    baseNorm: floats("base_norm"),
    norm: floats("norm"),
    delta: floats("delta"),
    low: floats("low"),
    high: floats("high"),
    baseSelfNorm: floats("base_self_norm"),
    selfNorm: floats("self_norm"),
    state: Uint8Array.from(checked(column(nodes, "state", size), answer.states.length, "state")),
    strength: floats("strength"),
    states: answer.states,
  };
  const weight = new Float64Array(size);
  for (let i = 0; i < size; i++) {
    const before = width === "after" ? 0 : (diff.baseNorm[i] as number);
    const after = width === "before" ? 0 : (diff.norm[i] as number);
    weight[i] = before + after;
  }
  return build(nodes, answer.strings, answer.kinds, weight, diff);
}

function build(
  nodes: TreeColumns,
  strings: readonly string[],
  kinds: readonly string[],
  weight: Float64Array,
  diff: DiffData | null,
): Tree {
  const size = nodes.parent.length;
  if (size === 0) throw new BadTree("the tree has no root");
  const parent = Int32Array.from(nodes.parent);
  const depth = new Int32Array(size);
  const end = new Int32Array(size);
  const start = new Float64Array(size);
  const cursor = new Float64Array(size);
  const counts: number[] = [1];
  end[0] = 1;
  for (let i = 1; i < size; i++) {
    const p = parent[i] as number;
    if (p < 0 || p >= i) throw new BadTree(`node ${i} of the tree comes before its parent ${p}`);
    const d = (depth[p] as number) + 1;
    depth[i] = d;
    counts[d] = (counts[d] ?? 0) + 1;
    start[i] = cursor[p] as number;
    cursor[i] = start[i] as number;
    cursor[p] = (cursor[p] as number) + (weight[i] as number);
    end[i] = i + 1;
  }
  for (let i = size - 1; i > 0; i--) {
    const p = parent[i] as number;
    if ((end[i] as number) > (end[p] as number)) end[p] = end[i] as number;
  }
  const levels = counts.map((count) => new Int32Array(count));
  const filled = new Int32Array(counts.length);
  for (let i = 0; i < size; i++) {
    const d = depth[i] as number;
    (levels[d] as Int32Array)[filled[d] as number] = i;
    filled[d] = (filled[d] as number) + 1;
  }
  const kind = Uint8Array.from(checked(column(nodes, "kind", size), kinds.length, "kind"));
  const trimmedKind = kinds.indexOf("trimmed");
  return {
    size,
    strings,
    kinds,
    parent,
    name: checked(column(nodes, "name", size), strings.length, "name"),
    module: checked(column(nodes, "module", size), strings.length, "module"),
    kind,
    inlined: Uint8Array.from(column(nodes, "inlined", size)),
    total: Float64Array.from(column(nodes, "total", size)),
    self: Float64Array.from(column(nodes, "self", size)),
    depth,
    end,
    weight,
    start,
    levels,
    trimmed: trimmedKind >= 0 && kind.includes(trimmedKind),
    diff,
  };
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

/** From the root's child down to the node itself; the root alone gives an empty path. */
export function ancestors(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let i = node; i > ROOT; i = tree.parent[i] as number) path.push(i);
  return path.reverse();
}
