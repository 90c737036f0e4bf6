/** Functions of a tree by number. In: a tree. Out: a number for each of its frames. */
import { Pairs } from "./pairs.ts";
import { atOnce, STEP, type Steps } from "./slices.ts";
import type { Tree } from "./tree.ts";

/** The module of what the server folded: it is all one function. */
const FOLDED = -1;

/** The same number for the same kind, module and name; all folded frames have one. */
export function* functionIds(tree: Tree): Steps<{ ids: Int32Array; pairs: Pairs }> {
  const pairs = new Pairs(tree.strings.length);
  const folded = tree.kinds.indexOf("trimmed");
  const ids = new Int32Array(tree.size);
  for (let i = 0; i < tree.size; i++) {
    if ((i & STEP) === 0) yield;
    const kind = tree.kind[i] as number;
    ids[i] =
      kind === folded
        ? pairs.of(FOLDED, 0)
        : pairs.of(tree.name[i] as number, (tree.module[i] as number) * tree.kinds.length + kind);
  }
  return { ids, pairs };
}

interface Ids {
  ids: Int32Array;
  /** How many functions there are. */
  size: number;
}

const known = new WeakMap<Tree, Ids>();

/** The same, made once a tree: whatever of it is zoomed. */
export function idsOf(tree: Tree): Ids {
  let made = known.get(tree);
  if (made === undefined) {
    const { ids, pairs } = atOnce(functionIds(tree));
    made = { ids, size: pairs.size };
    known.set(tree, made);
  }
  return made;
}
