/** Functions of a tree. In: a tree. Out: where one stands in it, in a table, and which modules there are. */
import { compareText } from "../text/names.ts";
import type { FrameKey } from "./places.ts";
import { frameName, kindName, moduleName, type Tree } from "./tree.ts";

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
