/**
 * Finding frames by name. Plain text matches anywhere in a name, whatever its case; `/…/` is a regular expression,
 * with `i` behind it for any case. A sample counts once, however often its stack matches.
 */
import { ROOT, type Tree } from "./tree.ts";

export type Matcher = (name: string) => boolean;

export interface Search {
  /** One flag a node: its own name matches. */
  hits: Uint8Array;
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

/** The texts that are names of frames, each once: others are modules. The trees are of the same texts. */
export function namesOf(...trees: readonly Pick<Tree, "name" | "strings">[]): Int32Array {
  const met = new Uint8Array(trees[0]?.strings.length ?? 0);
  const names = new Int32Array(met.length);
  let count = 0;
  for (const { name } of trees) {
    for (let i = 0; i < name.length; i++) {
      const id = name[i] as number;
      if (met[id] === 1) continue;
      met[id] = 1;
      names[count++] = id;
    }
  }
  return names.subarray(0, count);
}

/** What was found for another text in the same names. */
export interface Found {
  wanted: Wanted;
  /** A flag a text of the tree: it matches. */
  flags: Uint8Array;
}

/**
 * One flag a text of the tree: it is a name that matches. A name is looked at once, however many frames have it, and not at all where the text
 * that was looked for `before` tells: what lacks a part of a text lacks the text.
 */
export function matchesOf(
  { strings }: Pick<Tree, "strings">,
  names: Int32Array,
  { matcher, plain }: Wanted,
  before: Found | null = null,
): Uint8Array {
  const flags = new Uint8Array(strings.length);
  const old = before?.wanted.plain ?? null;
  const isLonger = old !== null && plain?.includes(old);
  const isShorter = plain !== null && old?.includes(plain);
  for (let i = 0; i < names.length; i++) {
    const id = names[i] as number;
    const known = before?.flags[id] === 1;
    if (known ? isShorter || matcher(strings[id] as string) : !isLonger && matcher(strings[id] as string))
      flags[id] = 1;
  }
  return flags;
}

/** `names`: a flag a text, as `matchesOf` gives them. */
export function search(tree: Tree, names: Uint8Array, focus: number = ROOT): Search {
  const { hits, count } = hitsOf(tree, names);
  const end = tree.end[focus] as number;
  // Of a sandwich, a stack may match among the callers and among the callees: both are told.
  const split = focus === ROOT ? tree.callersFrom : end;
  const part = ({ samples, baseSamples }: Matched) => ({
    samples,
    baseSamples,
    afterShare: ratio(samples, tree.total[focus] as number),
    baseShare: ratio(baseSamples, tree.diff?.baseTotal[focus] ?? 0),
  });
  return {
    hits,
    frames: focus === ROOT ? count : countOf(hits, focus, end),
    framesInAll: count,
    ...part(within(tree, hits, focus, split)),
    callers: split < end ? part(within(tree, hits, split, end)) : null,
  };
}

/** A flag a node, and how many are set: counted on the way, since each pass over a million flags costs a part of a picture's time. */
function hitsOf(
  { name, kind, kinds, trimmed, shape, size }: Tree,
  names: Uint8Array,
): { hits: Uint8Array; count: number } {
  const hits = new Uint8Array(size);
  let count = 0;
  for (let i = shape === "sandwich" ? 0 : 1; i < size; i++) {
    const hit = names[name[i] as number] as number;
    hits[i] = hit;
    count += hit;
  }
  // The name of folded frames is the server's, no function's.
  const folded = trimmed ? kinds.indexOf("trimmed") : -1;
  if (folded < 0 || !names.includes(1)) return { hits, count };
  for (let i = kind.indexOf(folded); i >= 0; i = kind.indexOf(folded, i + 1)) {
    count -= hits[i] as number;
    hits[i] = 0;
  }
  return { hits, count };
}

function countOf(hits: Uint8Array, from: number, until: number): number {
  let count = 0;
  for (let i = from; i < until; i++) count += hits[i] as number;
  return count;
}

interface Matched {
  samples: number;
  baseSamples: number;
}

/** Of the nodes from `from` on, before `until`: what goes through a hit, each sample once. */
function within(tree: Tree, hits: Uint8Array, from: number, until: number): Matched {
  const sum = { samples: 0, baseSamples: 0 };
  for (let i = hits.indexOf(1, from); i >= 0 && i < until; i = hits.indexOf(1, tree.end[i] as number)) {
    sum.samples += tree.total[i] as number;
    sum.baseSamples += tree.diff?.baseTotal[i] ?? 0;
  }
  return sum;
}

function ratio(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

/** The next frame that matches behind (or before) the selected one, round the end; null where none does. */
export function nextHit(tree: Tree, hits: Uint8Array, from: number, direction: 1 | -1): number | null {
  for (let step = 1; step <= tree.size; step++) {
    const i = (((from + direction * step) % tree.size) + tree.size) % tree.size;
    if (hits[i] === 1 && (tree.weight[i] as number) > 0) return i;
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
