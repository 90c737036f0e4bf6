/**
 * What a person does to a tree to see what matters. In: a tree and a list of transforms, applied in their order, of one
 * window or of a difference. Out: another tree; of each sample that stays, nothing is lost, and totals are exact sums.
 *
 * `focus`     stacks through a function, from its outermost frame on; other samples leave
 * `hide`      without a function's frames: what they spent counts for their callers
 * `merge`     a function that calls itself directly is one frame
 * `collapse`  frames of one module that follow each other are one frame
 * `invert`    from the leaf to its callers
 * `sandwich`  one function, all its callees below it and all its callers above; always the last
 *
 * Rows of labels are no functions, and none of this is done to them: stacks are focused and turned round below their
 * rows, and in a sandwich a row is the outermost caller.
 */
import { functionIds } from "../tree/functionIds.ts";
import { Pairs } from "../tree/pairs.ts";
import { rowKind } from "../tree/rows.ts";
import { atOnce, STEP, type Steps } from "../tree/slices.ts";
import { ROOT, type Tree } from "../tree/tree.ts";
import { measuresOf, TreeBuilder } from "./builder.ts";
import type { Transform } from "./list.ts";

export interface Transformed {
  tree: Tree;
  /** From the root to the leaves, as the samples were taken: what tables and figures of a function are of. */
  upright: Tree;
  /** Transforms whose function or module does not occur here; they are left out. */
  missing: Transform[];
}

/** The same at once: of small trees. */
export function transformed(tree: Tree, list: readonly Transform[], free = FREE): Transformed {
  return atOnce(transforming(tree, list, free));
}

/** `free`: nodes that turning a tree round may make before small ones are folded; four times as many are the most. */
export function* transforming(tree: Tree, list: readonly Transform[], free = FREE): Steps<Transformed> {
  const missing: Transform[] = [];
  const ordered = [...list.filter(({ op }) => op !== "sandwich"), ...list.filter(({ op }) => op === "sandwich")];
  let shown = tree;
  let upright = tree;
  let turned = false;
  for (const one of ordered) {
    if (one.op === "invert") turned = true;
    const before = shown;
    const changed = yield* applied(shown, one, free);
    if (changed === null) missing.push(one);
    else shown = changed;
    // Below an inverted tree a focus is on callers, which the table's functions are not.
    if (!turned && one.op !== "sandwich") upright = shown;
    else if (one.op !== "invert" && one.op !== "sandwich" && one.op !== "focus" && shown !== before)
      upright = (yield* applied(upright, one, free)) ?? upright;
  }
  return { tree: shown, upright, missing };
}

/** The changed tree, or null where the transform is about something that this tree does not have. */
function* applied(tree: Tree, { op, name }: Transform, free: number): Steps<Tree | null> {
  if (op === "merge") return yield* merged(tree);
  if (op === "invert") return yield* inverted(tree, free);
  const column = op === "collapse" ? tree.module : tree.name;
  const id = tree.strings.indexOf(name);
  const others = [tree.kinds.indexOf("trimmed"), rowKind(tree)];
  const isMeant = (node: number) => column[node] === id && node !== ROOT && !others.includes(tree.kind[node] as number);
  let first = 1;
  while (first < tree.size && !isMeant(first)) first++;
  if (id < 0 || first === tree.size) return null;
  if (op === "sandwich") return yield* sandwiched(tree, isMeant, first, free);
  return yield* (op === "focus" ? focused : op === "hide" ? hidden : collapsed)(tree, isMeant);
}

/** Where a frame goes, given where its caller went; -1 for nowhere. */
type PlaceNode = (node: number, above: number, builder: TreeBuilder) => number;

function* reshaped(tree: Tree, root: number, place: PlaceNode): Steps<Tree> {
  const builder = new TreeBuilder(tree);
  const image = new Int32Array(tree.size);
  image[ROOT] = root;
  if (root >= 0) builder.add(root, ROOT);
  for (let i = 1; i < tree.size; i++) {
    if ((i & STEP) === 0) yield;
    const at = place(i, image[tree.parent[i] as number] as number, builder);
    image[i] = at;
    if (at >= 0) builder.add(at, i);
  }
  return yield* builder.finish(tree.shape);
}

function* focused(tree: Tree, isMeant: (node: number) => boolean): Steps<Tree> {
  const { ids } = yield* functionIds(tree);
  const begin = yield* belowRows(tree, ids);
  return yield* reshaped(tree, -1, (node, above, builder) => {
    if (above < 0 && !isMeant(node)) return -1;
    return builder.child(above < 0 ? begin(builder, tree.parent[node] as number) : above, ids[node] as number, node);
  });
}

/**
 * Where the stacks of a node begin in the new tree: below its rows, which are made where the first of their stacks is.
 */
function* belowRows(tree: Tree, ids: Int32Array): Steps<(builder: TreeBuilder, node: number) => number> {
  const row = rowKind(tree);
  /** The innermost row of each node, itself or above it; the root where there is none. */
  const rows = new Int32Array(tree.size);
  for (let i = 1; i < tree.size; i++) {
    if ((i & STEP) === 0) yield;
    rows[i] = tree.kind[i] === row ? i : (rows[tree.parent[i] as number] as number);
  }
  const image = new Map([[ROOT, ROOT]]);
  const begin = (builder: TreeBuilder, node: number): number => {
    const at = rows[node] as number;
    let made = image.get(at);
    if (made === undefined) {
      made = builder.child(begin(builder, tree.parent[at] as number), ids[at] as number, at);
      image.set(at, made);
    }
    return made;
  };
  return begin;
}

function* hidden(tree: Tree, isMeant: (node: number) => boolean): Steps<Tree> {
  const { ids } = yield* functionIds(tree);
  return yield* reshaped(tree, ROOT, (node, above, builder) =>
    isMeant(node) ? above : builder.child(above, ids[node] as number, node),
  );
}

function* merged(tree: Tree): Steps<Tree> {
  const { ids } = yield* functionIds(tree);
  return yield* reshaped(tree, ROOT, (node, above, builder) =>
    builder.fn[above] === ids[node] ? above : builder.child(above, ids[node] as number, node),
  );
}

function* collapsed(tree: Tree, isMeant: (node: number) => boolean): Steps<Tree> {
  const { ids, pairs } = yield* functionIds(tree);
  const whole = -2;
  return yield* reshaped(tree, ROOT, (node, above, builder) => {
    if (!isMeant(node)) return builder.child(above, ids[node] as number, node);
    const fn = pairs.of(whole, tree.kind[node] as number);
    return builder.fn[above] === fn ? above : builder.child(above, fn, node, tree.module[node]);
  });
}

function* inverted(tree: Tree, free: number): Steps<Tree> {
  const { own } = measuresOf(tree);
  const leaves: number[] = [];
  for (let i = 1; i < tree.size; i++) {
    if ((i & STEP) === 0) yield;
    if (own.some((column) => column[i] !== 0)) leaves.push(i);
  }
  const builder = new TreeBuilder(tree);
  // Stacks without any frame end, and begin, at the root.
  builder.add(ROOT, ROOT);
  yield* climb(tree, builder, Int32Array.from(leaves), leaves.slice(), own, false, free);
  return yield* builder.finish("inverted");
}

function* sandwiched(tree: Tree, isMeant: (node: number) => boolean, root: number, free: number): Steps<Tree> {
  const { ids } = yield* functionIds(tree);
  const { total } = measuresOf(tree);
  const builder = new TreeBuilder(tree, root);
  const image = new Int32Array(tree.size);
  const outermost: number[] = [];
  for (let i = root; i < tree.size; ) {
    if (!isMeant(i)) {
      i++;
      continue;
    }
    outermost.push(i);
    builder.add(ROOT, i);
    const end = tree.end[i] as number;
    image[i] = ROOT;
    for (let j = i + 1; j < end; j++) {
      const at = builder.child(image[tree.parent[j] as number] as number, ids[j] as number, j);
      image[j] = at;
      builder.add(at, j);
    }
    i = end;
  }
  const callersFrom = builder.size;
  const callers = outermost.map((node) => tree.parent[node] as number);
  yield* climb(tree, builder, Int32Array.from(outermost), callers, total, true, free);
  return yield* builder.finish("sandwich", callersFrom);
}

const FREE = 300_000;

/**
 * Adds the way from frames to the root, frame by frame, below the root of the new tree. What `of` has of each `origin`
 * counts where its way ends. All ways go one step at a time, so that what is too small is known before it is made: many
 * stacks that end in many ways would be more nodes than the tree has. Small ones are folded into one of their caller,
 * and counted.
 */
function* climb(
  tree: Tree,
  builder: TreeBuilder,
  origin: Int32Array,
  next: ArrayLike<number>,
  of: readonly Float64Array[],
  above: boolean,
  free: number,
): Steps<void> {
  const { ids, pairs } = yield* functionIds(tree);
  const folded = pairs.of(-1, 0);
  const weightOf = weights(tree, of);
  const all = origin.reduce((sum, node) => sum + weightOf(node), 0);
  const current = Int32Array.from(next);
  const at = new Int32Array(origin.length);
  const row = rowKind(tree);
  // What is turned round ends below its rows; callers of a function end with them.
  const isEnd = (node: number) => node === ROOT || (!above && tree.kind[node] === row);
  if (!above && tree.kind.includes(row)) {
    const begin = yield* belowRows(tree, ids);
    for (let e = 0; e < at.length; e++) at[e] = begin(builder, origin[e] as number);
  }
  const group = new Int32Array(origin.length);
  // Callers stand beside the callees of the root, and must not be taken for them.
  const key = (e: number, fn: number) => (above && at[e] === ROOT ? ~fn : fn);
  for (let alive = origin.length; alive > 0; ) {
    const least = leastOf(builder.size, all, free);
    const groups = new Pairs(least > 0 ? alive : 0);
    const mass: number[] = [];
    for (let e = 0; least > 0 && e < alive; e++) {
      if ((e & STEP) === 0) yield;
      const node = current[e] as number;
      if (isEnd(node)) continue;
      const g = groups.of(at[e] as number, ids[node] as number);
      group[e] = g;
      mass[g] = (mass[g] ?? 0) + weightOf(origin[e] as number);
    }
    let kept = 0;
    for (let e = 0; e < alive; e++) {
      if ((e & STEP) === 0) yield;
      const node = current[e] as number;
      const from = origin[e] as number;
      if (isEnd(node)) {
        if (!above || at[e] !== ROOT) builder.add(at[e] as number, from, of);
        continue;
      }
      const g = group[e] as number;
      if (least > 0 && (mass[g] as number) < least) {
        // A group counts as one frame: its first entry tells it, which is then marked by a weight of -1.
        builder.add(builder.fold(at[e] as number, key(e, folded), node, (mass[g] as number) >= 0), from, of);
        mass[g] = -1;
        continue;
      }
      const child = builder.child(at[e] as number, key(e, ids[node] as number), node);
      at[kept] = child;
      current[kept] = tree.parent[node] as number;
      origin[kept] = from;
      kept++;
    }
    alive = kept;
  }
}

function leastOf(size: number, all: number, free: number): number {
  if (size < free) return 0;
  return size >= 4 * free ? Number.POSITIVE_INFINITY : all * 1e-6 * (size / free) ** 3;
}

function weights(tree: Tree, of: readonly Float64Array[]): (node: number) => number {
  const [samples, , norm, baseNorm] = of as [Float64Array, Float64Array, Float64Array, Float64Array];
  if (tree.diff === null) return (node) => samples[node] as number;
  return (node) => (norm[node] as number) + (baseNorm[node] as number);
}
