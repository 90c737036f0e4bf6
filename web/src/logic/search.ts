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

/** The matcher, or what is wrong with the expression; null where nothing is searched for. */
export function matcherOf(text: string): { matcher: Matcher } | { error: string } | null {
  const wanted = text.trim();
  if (wanted === "") return null;
  const expression = /^\/(.*)\/(i?)$/s.exec(wanted);
  if (expression === null) {
    // Faster than to make a copy of each name in small letters.
    const text = new RegExp(literal(wanted), "iu");
    return { matcher: (name) => text.test(name) };
  }
  try {
    const regex = new RegExp(expression[1] as string, expression[2]);
    return { matcher: (name) => regex.test(name) };
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

/** One flag a text of the tree: it matches. A name is looked at once, however many frames have it. */
export function matchesOf({ strings }: Pick<Tree, "strings">, matcher: Matcher): Uint8Array {
  const names = new Uint8Array(strings.length);
  // Three times as fast as an array made from an array.
  for (let i = 0; i < names.length; i++) if (matcher(strings[i] as string)) names[i] = 1;
  return names;
}

/** `names`: as `matchesOf` gives them. */
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
