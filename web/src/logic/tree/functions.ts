/** Functions of a tree. In: a tree. Out: where one stands in it and in a table, and which kinds there are. */
import { type FrameKey, isSameFunction } from "./frameKey.ts";
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
