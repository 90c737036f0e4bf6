/** Functions of a tree. In: a tree. Out: where one stands in it, in a table, and which modules there are. */
import { compareText } from "../text/names.ts";
import { type FrameKey, isSameFunction } from "./frameKey.ts";
import { isRow } from "./rows.ts";
import { frameName, kindName, moduleName, type Tree } from "./tree.ts";

/** The row of a frame's function, or -1. */
export function rowOf(rows: readonly FrameKey[], tree: Tree, node: number): number {
  const key = { name: frameName(tree, node), module: moduleName(tree, node), kind: kindName(tree, node) };
  return rows.findIndex((row) => isSameFunction(row, key));
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

/** Kinds that the tree's frames have, by their names; a kind of which all frames are inlined is no kind of its own. */
export function kindsOf(tree: Tree): { kind: string; inlined: boolean }[] {
  const seen = new Uint8Array(2 * tree.kinds.length);
  for (let i = 1; i < tree.size; i++) seen[2 * (tree.kind[i] as number) + (tree.inlined[i] as number)] = 1;
  return tree.kinds.flatMap((kind, id) =>
    [false, true].flatMap((inlined) => (seen[2 * id + Number(inlined)] === 1 ? [{ kind, inlined }] : [])),
  );
}

/** Modules by what their frames have themselves, most first; the root, rows and folded frames are no module's. */
export function modulesOf(tree: Tree): { module: string; self: number }[] {
  const self = new Float64Array(tree.strings.length);
  for (let i = 1; i < tree.size; i++) {
    if (isRow(tree, i)) continue;
    const module = tree.module[i] as number;
    self[module] = (self[module] as number) + (tree.self[i] as number);
  }
  const modules: { module: string; self: number }[] = [];
  self.forEach((sum, id) => {
    if (sum > 0) modules.push({ module: tree.strings[id] as string, self: sum });
  });
  return modules.sort((a, b) => b.self - a.self || compareText(a.module, b.module));
}

/** Names of functions that contain a word in any case, those that it begins first, then by their samples. */
export function functionsLike(tree: Tree, word: string, most: number): string[] {
  const low = word.toLowerCase();
  /** 0: not looked at; 1: no; 2: inside; 3: at its begin. */
  const verdicts = new Uint8Array(tree.strings.length);
  const samples = new Map<number, number>();
  for (let i = 1; i < tree.size; i++) {
    if (isRow(tree, i)) continue;
    const name = tree.name[i] as number;
    if (verdicts[name] === 0) {
      const at = (tree.strings[name] as string).toLowerCase().indexOf(low);
      verdicts[name] = at < 0 ? 1 : at === 0 ? 3 : 2;
    }
    if (verdicts[name] !== 1) samples.set(name, (samples.get(name) ?? 0) + (tree.self[i] as number));
  }
  return [...samples]
    .sort(([a, ofA], [b, ofB]) => (verdicts[b] as number) - (verdicts[a] as number) || ofB - ofA)
    .slice(0, most)
    .map(([name]) => tree.strings[name] as string);
}
