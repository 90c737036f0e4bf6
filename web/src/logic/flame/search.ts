/**
 * Finding frames by name. Plain text matches anywhere in a name, whatever its case; `/…/` is a regular expression,
 * with `i` behind it for any case. A sample counts once, however often its stack matches.
 */
import { shareOf } from "../text/format.ts";
import { isNoFunction } from "../tree/rows.ts";
import { ROOT, type Tree } from "../tree/tree.ts";

export type Matcher = (name: string) => boolean;

export interface Search {
  hits: Matching;
  /** They by row, where they are few; null where most of a row's pixels have one. */
  few: HitRows | null;
  /** How many frames match, within the focused frame and in all. */
  frames: number;
  framesInAll: number;
  /** Samples within the focused frame whose stack matches, side B in a difference. */
  samples: number;
  baseSamples: number;
  /** Parts of each side's samples; in one window `baseShare` is 0. */
  afterShare: number;
  baseShare: number;
  /** The same among the callers of a sandwich, whose function all stacks share; null without. */
  callers: Pick<Search, "samples" | "baseSamples" | "afterShare" | "baseShare"> | null;
}

/** Which nodes match. */
export interface Matching {
  has(node: number): boolean;
}

/** Asked of a node's name: flags of a million nodes would be made anew for each letter. */
class Hits implements Matching {
  private readonly name: Int32Array;
  private readonly kind: Uint8Array;
  private readonly isFrame: Uint8Array;

  /** `names`: a flag a text of the tree. */
  constructor(
    tree: Tree,
    private readonly names: Uint8Array,
  ) {
    this.name = tree.name;
    this.kind = tree.kind;
    this.isFrame = frameKinds(tree);
  }

  has(node: number): boolean {
    return this.names[this.name[node] as number] === 1 && this.isFrame[this.kind[node] as number] === 1;
  }
}

/**
 * A flag a kind: names of others are the page's or the server's, as of all samples together and of folded frames, or
 * values of labels, and no function's.
 */
function frameKinds({ kinds }: Pick<Tree, "kinds">): Uint8Array {
  return Uint8Array.from(kinds, (kind) => (isNoFunction(kind) ? 0 : 1));
}

/**
 * The nodes that match, row by row, each from left to right: those of row `d` stand from `begin[d]` on, before `begin[d
 * + 1]`.
 */
export interface HitRows {
  nodes: Int32Array;
  begin: Int32Array;
}

/** What is searched for: `plain` where it is text that may stand anywhere in a name, null for an expression. */
export interface Wanted {
  matcher: Matcher;
  plain: string | null;
}

/** What tells a match, or what is wrong with the expression; null where nothing is searched for. */
export function matcherOf(text: string): Wanted | { error: string } | null {
  const wanted = text.trim();
  if (wanted === "") return null;
  const expression = /^\/(.*)\/(i?)$/s.exec(wanted);
  if (expression === null) {
    // Faster than to make a copy of each name in small letters.
    const text = new RegExp(literal(wanted), "iu");
    return { matcher: (name) => text.test(name), plain: wanted };
  }
  try {
    const regex = new RegExp(expression[1] as string, expression[2]);
    return { matcher: (name) => regex.test(name), plain: null };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** An expression that matches this text and nothing else. */
function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** The same search as a regular expression for the server. */
export function serverPattern(text: string): string {
  const wanted = text.trim();
  const expression = /^\/(.*)\/(i?)$/s.exec(wanted);
  if (expression !== null) return expression[2] === "i" ? `(?i)${expression[1]}` : (expression[1] as string);
  return wanted === "" ? "" : `(?i)${literal(wanted)}`;
}

/** Frames by name: those of text `id` stand in `nodes` from `begin[id]` on, before `begin[id + 1]`, in their order. */
interface ByName {
  begin: Int32Array;
  nodes: Int32Array;
}

const known = new WeakMap<Tree, ByName>();

/** Made once a tree, in two passes over its nodes: whoever has time before the first letter asks for it then. */
export function byName(tree: Tree): ByName {
  const { name, kind, size, strings } = tree;
  let made = known.get(tree);
  if (made !== undefined) return made;
  const isFrame = frameKinds(tree);
  const begin = new Int32Array(strings.length + 1);
  for (let i = 0; i < size; i++) {
    const behind = (name[i] as number) + 1;
    begin[behind] = (begin[behind] as number) + (isFrame[kind[i] as number] as number);
  }
  for (let id = 1; id < begin.length; id++) begin[id] = (begin[id] as number) + (begin[id - 1] as number);
  const nodes = new Int32Array(begin[strings.length] as number);
  const next = begin.slice();
  for (let i = 0; i < size; i++) {
    if (isFrame[kind[i] as number] === 0) continue;
    const id = name[i] as number;
    nodes[next[id] as number] = i;
    next[id] = (next[id] as number) + 1;
  }
  made = { begin, nodes };
  known.set(tree, made);
  return made;
}

/** The texts that are names of frames, each once: others are modules. The trees are of the same texts. */
export function namesOf(...trees: readonly Tree[]): Int32Array {
  const begins = trees.map((tree) => byName(tree).begin);
  const names = new Int32Array(trees[0]?.strings.length ?? 0);
  let count = 0;
  for (let id = 0; id < names.length; id++)
    if (begins.some((begin) => (begin[id + 1] as number) > (begin[id] as number))) names[count++] = id;
  return names.subarray(0, count);
}

/** What was found for another text in the same names. */
interface Found {
  wanted: Wanted;
  /** A flag a text of the tree: it matches. */
  flags: Uint8Array;
}

/** Flags of all remembered texts together. */
const MOST_REMEMBERED_BYTES = 4 << 20;
const LEAST_REMEMBERED = 2;

/**
 * Which of a tree's names match, one text after the other, as letters are typed and taken back. A name is looked at
 * once for a text, however many frames have it, and not at all where the text before tells: what lacks a part of a text
 * lacks the text. What was found for the texts before that is remembered, for letters that are taken back.
 */
export class Letters {
  private newest: Found | null = null;
  private readonly remembered = new Map<string, Found>();

  /** `names`: as `namesOf` gives them. */
  constructor(
    private readonly strings: Tree["strings"],
    private readonly names: Int32Array,
  ) {}

  /** A flag a text of the tree: it is a name that matches. The same text has the same flags. */
  matches(wanted: Wanted): Uint8Array {
    const { plain } = wanted;
    const known = plain === null ? undefined : this.remembered.get(plain);
    this.newest = known ?? { wanted, flags: this.look(wanted) };
    if (plain !== null) this.remember(plain, this.newest);
    return this.newest.flags;
  }

  private look({ matcher, plain }: Wanted): Uint8Array {
    const { strings, names, newest } = this;
    const flags = new Uint8Array(strings.length);
    const old = newest?.wanted.plain ?? null;
    const isLonger = old !== null && plain?.includes(old);
    const isShorter = plain !== null && old?.includes(plain);
    for (let i = 0; i < names.length; i++) {
      const id = names[i] as number;
      const known = newest?.flags[id] === 1;
      if (known ? isShorter || matcher(strings[id] as string) : !isLonger && matcher(strings[id] as string))
        flags[id] = 1;
    }
    return flags;
  }

  /** The texts that were asked for longest ago are forgotten. */
  private remember(plain: string, found: Found): void {
    const { remembered } = this;
    remembered.delete(plain);
    remembered.set(plain, found);
    const most = Math.max(LEAST_REMEMBERED, Math.floor(MOST_REMEMBERED_BYTES / Math.max(1, this.strings.length)));
    if (remembered.size > most) remembered.delete(remembered.keys().next().value as string);
  }
}

/** For one text alone. */
export function matchesOf({ strings }: Pick<Tree, "strings">, names: Int32Array, wanted: Wanted): Uint8Array {
  return new Letters(strings, names).matches(wanted);
}

/** `names`: a flag a text, as `matchesOf` gives them. */
export function search(tree: Tree, names: Uint8Array, focus: number = ROOT): Search {
  const hits = new Hits(tree, names);
  const { count, few } = found(tree, names);
  const end = tree.end[focus] as number;
  // Of a sandwich, a stack may match among the callers and among the callees: both are told.
  const split = focus === ROOT ? tree.callersFrom : end;
  const part = ({ samples, baseSamples }: Matched) => ({
    samples,
    baseSamples,
    afterShare: shareOf(samples, tree.total[focus] as number),
    baseShare: shareOf(baseSamples, tree.diff?.baseTotal[focus] ?? 0),
  });
  return {
    hits,
    few: few && rowsOf(tree, few),
    frames: focus === ROOT ? count : countOf(hits, few, focus, end),
    framesInAll: count,
    ...part(within(tree, hits, few, focus, split)),
    callers: split < end ? part(within(tree, hits, few, split, end)) : null,
  };
}

/**
 * Hits are few where they are one of so many frames: then it is cheaper to go from hit to hit than to look for one in
 * each pixel.
 */
const FEW = 12;

/** How many frames match, and which, in their order, if they are few. */
function found(tree: Tree, names: Uint8Array): { count: number; few: Int32Array | null } {
  const { begin, nodes } = byName(tree);
  const each = (take: (from: number, until: number) => void) => {
    for (let id = names.indexOf(1); id >= 0; id = names.indexOf(1, id + 1))
      take(begin[id] as number, begin[id + 1] as number);
  };
  let count = 0;
  each((from, until) => {
    count += until - from;
  });
  if (count * FEW > tree.size) return { count, few: null };
  const few = new Int32Array(count);
  let at = 0;
  each((from, until) => {
    few.set(nodes.subarray(from, until), at);
    at += until - from;
  });
  return { count, few: few.sort() };
}

/** Nodes by row: those of a row stand from left to right as they do in the tree. */
export function rowsOf({ levels, depth }: Pick<Tree, "levels" | "depth">, all: Int32Array): HitRows {
  const begin = new Int32Array(levels.length + 1);
  for (let i = 0; i < all.length; i++) {
    const behind = (depth[all[i] as number] as number) + 1;
    begin[behind] = (begin[behind] as number) + 1;
  }
  for (let d = 1; d < begin.length; d++) begin[d] = (begin[d] as number) + (begin[d - 1] as number);
  const nodes = new Int32Array(all.length);
  const next = begin.slice();
  for (let i = 0; i < all.length; i++) {
    const node = all[i] as number;
    const at = depth[node] as number;
    nodes[next[at] as number] = node;
    next[at] = (next[at] as number) + 1;
  }
  return { nodes, begin };
}

function countOf(hits: Hits, few: Int32Array | null, from: number, until: number): number {
  if (few !== null) return few.filter((node) => node >= from && node < until).length;
  let count = 0;
  for (let i = from; i < until; i++) count += hits.has(i) ? 1 : 0;
  return count;
}

interface Matched {
  samples: number;
  baseSamples: number;
}

/** Of the nodes from `from` on, before `until`: what goes through a hit, each sample once. */
function within(tree: Tree, hits: Hits, few: Int32Array | null, from: number, until: number): Matched {
  const { total, end, diff } = tree;
  const sum = { samples: 0, baseSamples: 0 };
  const add = (node: number) => {
    sum.samples += total[node] as number;
    sum.baseSamples += diff?.baseTotal[node] ?? 0;
  };
  // What lies below a hit goes through it.
  let behind = from;
  if (few === null) {
    while (behind < until) {
      const isHit = hits.has(behind);
      if (isHit) add(behind);
      behind = isHit ? (end[behind] as number) : behind + 1;
    }
    return sum;
  }
  for (let i = 0; i < few.length; i++) {
    const node = few[i] as number;
    if (node >= until) break;
    if (node < behind) continue;
    add(node);
    behind = end[node] as number;
  }
  return sum;
}

/** The next frame that matches behind (or before) the selected one, round the end; null where none does. */
export function nextHit(tree: Tree, hits: Matching, from: number, direction: 1 | -1): number | null {
  for (let step = 1; step <= tree.size; step++) {
    const i = (((from + direction * step) % tree.size) + tree.size) % tree.size;
    if (hits.has(i) && (tree.weight[i] as number) > 0) return i;
  }
  return null;
}

/** The name that a text finds exactly; other texts as they are. */
export function patternName(text: string): string {
  const exact = /^\/\^(.*)\$\/$/s.exec(text)?.[1];
  const name = exact?.replace(/\\(.)/gs, "$1");
  return name !== undefined && exactPattern(name) === text ? name : text;
}

/** Text that finds exactly this name. */
export function exactPattern(name: string): string {
  return `/^${literal(name).replaceAll("/", "\\/")}$/`;
}
