/**
 * A tree as a table of functions: the text equivalent of a flamegraph. In: a tree and the frame that is zoomed into.
 * Out: one row a function (kind, module, name) with self and total samples; a function that calls itself counts a
 * sample once.
 */
import { frameName, kindName, moduleName, type Tree } from "./tree.ts";

export interface FunctionRow {
  name: string;
  module: string;
  kind: string;
  self: number;
  total: number;
}

export function functionsOf(tree: Tree, focus: number): FunctionRow[] {
  const rows = new Map<number, FunctionRow>();
  // Per function, where the subtree ends that is already counted: a frame before that end is a recursion.
  const countedUntil = new Map<number, number>();
  const modules = tree.strings.length;
  for (let i = focus; i < (tree.end[focus] as number); i++) {
    const kind = tree.kind[i] as number;
    const name = kindName(tree, i);
    if (name === "root" || name === "trimmed") continue;
    const key = ((tree.name[i] as number) * modules + (tree.module[i] as number)) * tree.kinds.length + kind;
    let row = rows.get(key);
    if (row === undefined) {
      row = { name: frameName(tree, i), module: moduleName(tree, i), kind: name, self: 0, total: 0 };
      rows.set(key, row);
    }
    row.self += tree.self[i] as number;
    if (i >= (countedUntil.get(key) ?? 0)) {
      row.total += tree.total[i] as number;
      countedUntil.set(key, tree.end[i] as number);
    }
  }
  return [...rows.values()].filter((row) => row.total > 0);
}

export type SortKey = "name" | "self" | "total";

export function sortFunctions(rows: readonly FunctionRow[], key: SortKey, descending: boolean): FunctionRow[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const by = key === "name" ? compareText(a.name, b.name) : a[key] - b[key];
    return sign * by || b.total - a.total || compareText(a.name, b.name);
  });
}

export interface RankRow {
  name: string;
  total: number;
  cpu_seconds: number;
  user_share?: number | null;
  truncated_share?: number | null;
  unnamed_share?: number | null;
}

/** What is ranked by: a name, or a part of the time. */
export type RankKey = "name" | "total" | "kernel" | "cut" | "unnamed";

/** The part of a row's samples that a column is about; null where the server does not know. */
export function rankShare(row: RankRow, key: Exclude<RankKey, "name">): number | null {
  if (key === "total") return 1;
  if (key === "cut") return row.truncated_share ?? null;
  if (key === "unnamed") return row.unnamed_share ?? null;
  return row.user_share === null || row.user_share === undefined ? null : 1 - row.user_share;
}

export function sortRanks<Row extends RankRow>(rows: readonly Row[], key: RankKey, descending: boolean): Row[] {
  const sign = descending ? -1 : 1;
  const amount = (row: Row, part: Exclude<RankKey, "name">) => row.total * (rankShare(row, part) ?? 0);
  return [...rows].sort((a, b) => {
    const by = key === "name" ? compareText(a.name, b.name) : amount(a, key) - amount(b, key);
    return sign * by || b.total - a.total || compareText(a.name, b.name);
  });
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
