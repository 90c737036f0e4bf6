/**
 * A tree as a table of functions: the text equivalent of a flamegraph. In: a tree and the frame that is zoomed into.
 * Out: one row a function (kind, module, name) with self and total samples; a function that calls itself counts a
 * sample once.
 */
import { compareText } from "../text/names.ts";
import { functionIds } from "./functionIds.ts";
import type { FrameKey } from "./places.ts";
import { atOnce } from "./slices.ts";
import { frameName, kindName, moduleName, type Tree } from "./tree.ts";

export interface FunctionRow {
  name: string;
  /** The name as a number of the tree's texts. */
  nameId: number;
  module: string;
  kind: string;
  self: number;
  total: number;
}

export function functionsOf(tree: Tree, focus: number): FunctionRow[] {
  const { ids, pairs } = atOnce(functionIds(tree));
  const self = new Float64Array(pairs.size);
  const total = new Float64Array(pairs.size);
  // Per function, where the subtree ends that is already counted: a frame before that end is a recursion.
  const countedUntil = new Int32Array(pairs.size);
  const frame = new Int32Array(pairs.size).fill(-1);
  const met: number[] = [];
  const end = tree.end[focus] as number;
  for (let i = focus; i < end; i++) {
    const id = ids[i] as number;
    if (frame[id] === -1) {
      frame[id] = i;
      met.push(id);
    }
    self[id] = (self[id] as number) + (tree.self[i] as number);
    if (i < (countedUntil[id] as number)) continue;
    total[id] = (total[id] as number) + (tree.total[i] as number);
    countedUntil[id] = tree.end[i] as number;
  }
  const rows: FunctionRow[] = [];
  for (const id of met) {
    const i = frame[id] as number;
    if ((total[id] as number) <= 0) continue;
    const kind = kindName(tree, i);
    if (kind === "root" || kind === "trimmed") continue;
    const [name, module] = [frameName(tree, i), moduleName(tree, i)];
    rows.push({
      name,
      nameId: tree.name[i] as number,
      module,
      kind,
      self: self[id] as number,
      total: total[id] as number,
    });
  }
  return rows;
}

/** The row of a frame's function, or -1. */
export function rowOf(rows: readonly FrameKey[], tree: Tree, node: number): number {
  const [name, module, kind] = [frameName(tree, node), moduleName(tree, node), kindName(tree, node)];
  return rows.findIndex((row) => row.name === name && row.module === module && row.kind === kind);
}

/** The frame of a function that has the most samples; null where the tree has none. */
export function largestOf(tree: Tree, { name, module, kind }: FrameKey): number | null {
  const [nameId, moduleId, kindId] = [
    tree.strings.indexOf(name),
    tree.strings.indexOf(module),
    tree.kinds.indexOf(kind),
  ];
  let best: number | null = null;
  for (let i = 0; i < tree.size; i++) {
    if (tree.name[i] !== nameId || tree.module[i] !== moduleId || tree.kind[i] !== kindId) continue;
    if (best === null || (tree.weight[i] as number) > (tree.weight[best] as number)) best = i;
  }
  return best;
}

/** Modules by what their frames have themselves, most first; the root and folded frames are no module's. */
export function modulesOf(tree: Tree): { module: string; self: number }[] {
  const self = new Float64Array(tree.strings.length);
  for (let i = 1; i < tree.size; i++) {
    const module = tree.module[i] as number;
    self[module] = (self[module] as number) + (tree.self[i] as number);
  }
  const modules: { module: string; self: number }[] = [];
  self.forEach((sum, id) => {
    if (sum > 0) modules.push({ module: tree.strings[id] as string, self: sum });
  });
  return modules.sort((a, b) => b.self - a.self || compareText(a.module, b.module));
}

export const SORT_KEYS = ["name", "self", "total"] as const;
export type SortKey = (typeof SORT_KEYS)[number];

export function sortFunctions(rows: readonly FunctionRow[], key: SortKey, descending: boolean): FunctionRow[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const by = key === "name" ? compareText(a.name, b.name) : a[key] - b[key];
    return sign * by || b.total - a.total || compareText(a.name, b.name);
  });
}
