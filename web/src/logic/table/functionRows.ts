/**
 * The table of functions: the text equivalent of a flamegraph. In: a tree and the frame that is zoomed into. Out: one
 * row a function (kind, module, name) with self and total samples; a function that calls itself counts a sample once.
 */
import { compareText } from "../text/names.ts";
import { idsOf } from "../tree/functionIds.ts";
import { isNoFunction } from "../tree/rows.ts";
import { frameName, kindName, moduleName, type Tree } from "../tree/tree.ts";

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
  const { ids, size } = idsOf(tree);
  const self = new Float64Array(size);
  const total = new Float64Array(size);
  // Per function, where the subtree ends that is already counted: a frame before that end is a recursion.
  const countedUntil = new Int32Array(size);
  const frame = new Int32Array(size).fill(-1);
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
    if (isNoFunction(kind)) continue;
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

export const FUNCTION_SORT_KEYS = ["name", "self", "total"] as const;
export type FunctionSortKey = (typeof FUNCTION_SORT_KEYS)[number];

export function sortFunctions(rows: readonly FunctionRow[], key: FunctionSortKey, descending: boolean): FunctionRow[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const by = key === "name" ? compareText(a.name, b.name) : a[key] - b[key];
    return sign * by || b.total - a.total || compareText(a.name, b.name);
  });
}
