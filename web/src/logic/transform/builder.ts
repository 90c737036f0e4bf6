/**
 * A tree while it is put together from another one's frames. In: paths, node by node, and what each of them has itself.
 * Out: a `Tree` whose totals are exactly the sums. Frames of one function under one caller are one node.
 */
import { Pairs } from "../tree/pairs.ts";
import { STEP, type Steps } from "../tree/slices.ts";
import { assembling, frameName, isOfSelf, ROOT, type Tree, widths } from "../tree/tree.ts";
import { sorting } from "./sorting.ts";
import { testResultOf } from "./testResult.ts";

/** What adds up: samples, and in a difference those of side A and both sides in the unit of the normalisation. */
export interface Measures {
  own: readonly Float64Array[];
  total: readonly Float64Array[];
}

export function measuresOf({ self, total, diff }: Tree): Measures {
  if (diff === null) return { own: [self], total: [total] };
  return {
    own: [self, diff.baseSelf, diff.selfNorm, diff.baseSelfNorm],
    total: [total, diff.baseTotal, diff.norm, diff.baseNorm],
  };
}

export class TreeBuilder {
  size = 1;
  /** The function of each node, as `functionIds` numbers them; the root's means nothing. */
  fn: Int32Array;
  private parent: Int32Array;
  private name: Int32Array;
  /** A frame of the source that is like the node, the one with the most samples. */
  private source: Int32Array;
  private own: Float64Array[];
  private readonly children: Pairs;
  private readonly measures: Measures;
  private readonly tree: Tree;
  /** The kind of folded frames; -1 where there are none. */
  private readonly trimmed: number;
  /** Frames that the folded ones stand for. */
  private readonly folded = new Map<number, number>();

  constructor(tree: Tree, root = ROOT, expected = tree.size) {
    this.tree = tree;
    this.trimmed = tree.kinds.indexOf("trimmed");
    this.measures = measuresOf(tree);
    this.children = new Pairs(expected);
    this.parent = new Int32Array(expected).fill(-1, 0, 1);
    this.fn = new Int32Array(expected).fill(-1, 0, 1);
    this.name = new Int32Array(expected);
    this.source = new Int32Array(expected);
    this.own = this.measures.own.map(() => new Float64Array(expected));
    this.name[0] = tree.name[root] as number;
    this.source[0] = root;
  }

  /**
   * The node below `parent` of the frame's function; made where there is none. `name`: another one than the frame's.
   */
  child(parent: number, fn: number, frame: number, name: number = this.tree.name[frame] as number): number {
    const node = this.children.of(parent, fn) + 1;
    if (node < this.size) {
      const known = this.source[node] as number;
      if (this.isFolded(frame)) this.folded.set(node, this.frames(known, node) + this.frames(frame));
      if (this.amount(frame) > this.amount(known)) this.source[node] = frame;
      return node;
    }
    if (node === this.parent.length) this.grow();
    this.size++;
    this.parent[node] = parent;
    this.fn[node] = fn;
    this.name[node] = name;
    this.source[node] = frame;
    return node;
  }

  /** The node below `parent` that stands for what was too small: one frame more. */
  fold(parent: number, fn: number, frame: number, isNew: boolean): number {
    const before = this.size;
    const node = this.children.of(parent, fn) + 1;
    if (node === before) {
      this.child(parent, fn, frame);
      this.folded.set(node, 0);
    }
    if (isNew) this.folded.set(node, this.frames(this.source[node] as number, node) + 1);
    return node;
  }

  /** Adds what a frame of the source has itself, or in `of`. */
  add(node: number, frame: number, of: readonly Float64Array[] = this.measures.own): void {
    for (let m = 0; m < of.length; m++) {
      const sums = this.own[m] as Float64Array;
      sums[node] = (sums[node] as number) + ((of[m] as Float64Array)[frame] as number);
    }
  }

  /** Nodes from `callersFrom` on stand above the root; what goes through them has been counted in the root already. */
  *finish(shape: Tree["shape"], callersFrom: number = this.size): Steps<Tree> {
    const { size, tree } = this;
    const totals = this.own.map((own) => own.slice(0, size));
    for (const total of totals) {
      for (let i = size - 1; i > 0; i--) {
        const p = this.parent[i] as number;
        if (p !== 0 || i < callersFrom) total[p] = (total[p] as number) + (total[i] as number);
      }
      yield;
    }
    const weight = this.weights(totals);
    yield;
    const order = yield* this.order(weight, shape, callersFrom);
    const place = new Int32Array(size);
    for (let at = 0; at < size; at++) place[order[at] as number] = at;
    const source = yield* picked(order, this.source, new Int32Array(size));
    const { strings, name, kind } = yield* this.named(order, source);
    const parent = yield* picked(order, this.parent, new Int32Array(size));
    for (let at = 1; at < size; at++) parent[at] = place[parent[at] as number] as number;
    const frames = {
      parent,
      name,
      module: yield* picked(source, tree.module, new Int32Array(size)),
      kind,
      inlined: yield* picked(source, tree.inlined, new Uint8Array(size)),
      total: yield* floats(order, totals[0] as Float64Array),
      self: yield* floats(order, this.own[0] as Float64Array),
    };
    const callers = callersFrom < size ? order.findIndex((node) => node >= callersFrom) : size;
    const diff = yield* this.judged(order, totals, shape, callers);
    return yield* assembling(
      frames,
      { strings, kinds: tree.kinds },
      yield* floats(order, weight),
      diff,
      shape,
      callers,
    );
  }

  private isFolded(frame: number): boolean {
    return this.tree.kind[frame] === this.trimmed;
  }

  private amount(frame: number): number {
    return (this.tree.total[frame] as number) + (this.tree.diff?.baseTotal[frame] ?? 0);
  }

  /** How many frames a folded one stands for, by its name. */
  private frames(frame: number, node = -1): number {
    return this.folded.get(node) ?? (Number.parseInt(frameName(this.tree, frame), 10) || 1);
  }

  private weights(totals: readonly Float64Array[]): Float64Array {
    const { diff } = this.tree;
    const [samples, , norm, baseNorm] = totals as [Float64Array, Float64Array, Float64Array, Float64Array];
    return diff === null ? samples : widths({ width: diff.width, norm, baseNorm });
  }

  /**
   * Pre-order. Callees by name, as the server has them; what was turned round by weight: there are many, and few
   * matter.
   */
  private *order(weight: Float64Array, shape: Tree["shape"], callersFrom: number): Steps<Int32Array> {
    const { size, tree, parent } = this;
    const begin = new Int32Array(size + 1);
    const next = (of: Int32Array, i: number) => {
      const at = of[i] as number;
      of[i] = at + 1;
      return at;
    };
    for (let i = 1; i < size; i++) next(begin, parent[i] as number);
    yield;
    let sum = 0;
    for (let i = 0; i <= size; i++) {
      const count = begin[i] as number;
      begin[i] = sum;
      sum += count;
    }
    const children = new Int32Array(Math.max(0, size - 1));
    const filled = begin.slice();
    for (let i = 1; i < size; i++) children[next(filled, parent[i] as number)] = i;
    yield;
    const name = (node: number) => tree.strings[this.name[node] as number] as string;
    const last = (node: number) => this.isFolded(this.source[node] as number);
    const compare = (a: number, b: number) => {
      const above = Number(a >= callersFrom) - Number(b >= callersFrom);
      if (above !== 0) return above;
      if (last(a) !== last(b)) return last(a) ? 1 : -1;
      const by = shape === "inverted" || a >= callersFrom ? (weight[b] as number) - (weight[a] as number) : 0;
      if (by !== 0) return by;
      const [x, y] = [name(a), name(b)];
      return x < y ? -1 : x > y ? 1 : a - b;
    };
    const order = new Int32Array(size);
    const pending = [0];
    let at = 0;
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      order[at++] = node;
      if ((at & STEP) === 0) yield;
      const [first, behind] = [begin[node] as number, begin[node + 1] as number];
      let isSorted = true;
      for (let i = first + 1; i < behind && isSorted; i++)
        isSorted = compare(children[i - 1] as number, children[i] as number) <= 0;
      if (!isSorted) yield* sorting(children.subarray(first, behind), compare);
      for (let i = behind - 1; i >= first; i--) pending.push(children[i] as number);
    }
    return order;
  }

  /** Names and kinds; where folded frames have come together, their new names too. */
  private *named(
    order: Int32Array,
    source: Int32Array,
  ): Steps<{ strings: readonly string[]; name: Int32Array; kind: Uint8Array }> {
    const { tree } = this;
    const name = yield* picked(order, this.name, new Int32Array(order.length));
    const kind = yield* picked(source, tree.kind, new Uint8Array(order.length));
    if (this.folded.size === 0) return { strings: tree.strings, name, kind };
    const strings = [...tree.strings];
    const known = new Map<number, number>();
    for (let at = 0; at < order.length; at++) {
      if ((at & STEP) === 0) yield;
      const frames = this.folded.get(order[at] as number);
      if (frames === undefined) continue;
      const id = known.get(frames) ?? strings.push(`${frames} frame${frames === 1 ? "" : "s"} below the threshold`) - 1;
      known.set(frames, id);
      name[at] = id;
      kind[at] = this.trimmed;
    }
    return { strings, name, kind };
  }

  private *judged(
    order: Int32Array,
    totals: readonly Float64Array[],
    shape: Tree["shape"],
    callersFrom: number,
  ): Steps<Tree["diff"]> {
    const { tree, own } = this;
    const { diff } = tree;
    if (diff === null) return null;
    const columns: Float64Array[] = [];
    for (const column of [...totals, ...own]) columns.push(yield* floats(order, column));
    type Columns = [Float64Array, Float64Array, Float64Array, Float64Array];
    const [total, baseTotal, norm, baseNorm] = columns as Columns;
    const [self, baseSelf, selfNorm, baseSelfNorm] = columns.slice(totals.length) as Columns;
    const delta = new Float64Array(order.length);
    const low = new Float64Array(order.length);
    const high = new Float64Array(order.length);
    const strength = new Float64Array(order.length);
    const state = new Uint8Array(order.length);
    for (let i = 0; i < order.length; i++) {
      if ((i & STEP) === 0) yield;
      const source = this.source[order[i] as number] as number;
      const ofSelf = isOfSelf({ diff, shape, callersFrom }, i);
      const [before, after] = ofSelf ? [baseSelf, self] : [baseTotal, total];
      const [baseLevel, level] = ofSelf ? [baseSelfNorm, selfNorm] : [baseNorm, norm];
      delta[i] = (level[i] as number) - (baseLevel[i] as number);
      const [was, is] = isOfSelf(tree, source) ? [diff.baseSelf, tree.self] : [diff.baseTotal, tree.total];
      const result =
        was[source] === before[i] && is[source] === after[i]
          ? {
              low: diff.low[source] as number,
              high: diff.high[source] as number,
              strength: diff.strength[source] as number,
              state: diff.states[diff.state[source] as number] as string,
            }
          : testResultOf(before[i] as number, after[i] as number, diff.scale);
      low[i] = result.low;
      high[i] = result.high;
      strength[i] = result.strength;
      state[i] = Math.max(0, diff.states.indexOf(result.state));
    }
    return { ...diff, baseTotal, baseSelf, baseNorm, norm, delta, low, high, baseSelfNorm, selfNorm, state, strength };
  }

  private grow(): void {
    const wider = <T extends Int32Array | Float64Array>(old: T): T => {
      const wide = new (old.constructor as new (length: number) => T)(old.length * 2);
      wide.set(old);
      return wide;
    };
    this.parent = wider(this.parent);
    this.fn = wider(this.fn);
    this.name = wider(this.name);
    this.source = wider(this.source);
    this.own = this.own.map(wider);
  }
}

/** What `of` has at each of the places, in their order. */
function* picked<T extends Int32Array | Float64Array | Uint8Array>(places: Int32Array, of: T, out: T): Steps<T> {
  for (let i = 0; i < places.length; i++) {
    if ((i & STEP) === 0) yield;
    out[i] = of[places[i] as number] as number;
  }
  return out;
}

const floats = (places: Int32Array, of: Float64Array) => picked(places, of, new Float64Array(places.length));
