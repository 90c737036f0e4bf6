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
  /** The name's place among the tree's texts in their order: to compare texts is what takes long in a sort. */
  place: number;
  module: string;
  kind: string;
  self: number;
  total: number;
}

const known = new WeakMap<readonly string[], Int32Array>();

/** The place of each text in their order; found once for all that is done to a tree. */
function placesOf(texts: readonly string[]): Int32Array {
  let places = known.get(texts);
  if (places === undefined) {
    places = new Int32Array(texts.length);
    const ids = Int32Array.from(texts, (_, id) => id);
    ids.sort((a, b) => compareText(texts[a] as string, texts[b] as string));
    for (let place = 0; place < ids.length; place++) places[ids[place] as number] = place;
    known.set(texts, places);
  }
  return places;
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
  const places = placesOf(tree.strings);
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
      place: places[tree.name[i] as number] as number,
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

/** Ties by total, then by name. */
export function sortFunctions(rows: readonly FunctionRow[], key: FunctionSortKey, descending: boolean): FunctionRow[] {
  const sign = descending ? -1 : 1;
  const by = key === "name" ? "place" : key;
  return [...rows].sort((a, b) => sign * (a[by] - b[by]) || b.total - a.total || a.place - b.place);
}
