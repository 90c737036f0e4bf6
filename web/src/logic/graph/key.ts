/** What a graph has that its key and its downloads tell: modules of its frames, labels of its rows. */
import { compareText } from "../text/names.ts";
import { isRow, rowKind } from "../tree/rows.ts";
import { moduleName, type Tree } from "../tree/tree.ts";

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

/** Labels that a tree has rows of, outermost first. */
export function rowLabels(tree: Tree): string[] {
  const row = rowKind(tree);
  const labels: string[] = [];
  // Rows stand above all stacks, so that each level's first frames tell.
  for (const level of tree.levels.slice(tree.rootRow + 1)) {
    const first = level.find((node) => tree.kind[node] === row);
    if (first === undefined) break;
    labels.push(moduleName(tree, first));
  }
  return labels;
}
