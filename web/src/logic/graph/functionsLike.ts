/** Functions of a tree by a word of their names. */
import { isRow } from "../tree/rows.ts";
import type { Tree } from "../tree/tree.ts";

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
