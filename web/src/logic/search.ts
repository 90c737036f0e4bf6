/**
 * Finding frames by name. Plain text matches anywhere in a name, whatever its case; `/…/` is a regular expression,
 * with `i` behind it for any case. A sample counts once, however often its stack matches.
 */
import { ROOT, type Tree } from "./tree.ts";

export type Matcher = (name: string) => boolean;

export interface Search {
  /** One flag a node: its own name matches. */
  hits: Uint8Array;
  /** The frames that match, row by row, from left to right. */
  levels: Int32Array[];
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
    const low = wanted.toLowerCase();
    return { matcher: (name) => name.toLowerCase().includes(low) };
  }
  try {
    const regex = new RegExp(expression[1] as string, expression[2]);
    return { matcher: (name) => regex.test(name) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** The same search as a regular expression for the server. */
export function serverPattern(text: string): string {
  const wanted = text.trim();
  const expression = /^\/(.*)\/(i?)$/s.exec(wanted);
  if (expression !== null) return expression[2] === "i" ? `(?i)${expression[1]}` : (expression[1] as string);
  return wanted === "" ? "" : `(?i)${wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`;
}

export function search(tree: Tree, matcher: Matcher, focus: number = ROOT): Search {
  const names = new Int8Array(tree.strings.length).fill(-1);
  const hits = new Uint8Array(tree.size);
  let [frames, framesInAll] = [0, 0];
  const end = tree.end[focus] as number;
  // The name of folded frames is the server's, no function's.
  const folded = tree.kinds.indexOf("trimmed");
  for (let i = tree.shape === "sandwich" ? 0 : 1; i < tree.size; i++) {
    if (tree.kind[i] === folded) continue;
    const id = tree.name[i] as number;
    if (names[id] === -1) names[id] = matcher(tree.strings[id] as string) ? 1 : 0;
    if (names[id] === 1) {
      hits[i] = 1;
      framesInAll++;
      if (i >= focus && i < end) frames++;
    }
  }
  // Of a sandwich, a stack may match among the callers and among the callees: both are told.
  const split = focus === ROOT ? tree.callersFrom : end;
  const found = within(tree, hits, focus, split);
  const callers = split < end ? within(tree, hits, split, end) : null;
  const part = ({ samples, baseSamples }: Matched) => ({
    samples,
    baseSamples,
    afterShare: ratio(samples, tree.total[focus] as number),
    baseShare: ratio(baseSamples, tree.diff?.baseTotal[focus] ?? 0),
  });
  return {
    hits,
    levels: levelsOf(tree, hits),
    frames,
    framesInAll,
    ...part(found),
    callers: callers === null ? null : part(callers),
  };
}

function levelsOf(tree: Tree, hits: Uint8Array): Int32Array[] {
  const counts = new Int32Array(tree.levels.length);
  for (let i = 0; i < tree.size; i++)
    if (hits[i] === 1) counts[tree.depth[i] as number] = (counts[tree.depth[i] as number] as number) + 1;
  const levels = Array.from(counts, (count) => new Int32Array(count));
  counts.fill(0);
  for (let i = 0; i < tree.size; i++) {
    if (hits[i] !== 1) continue;
    const row = tree.depth[i] as number;
    const at = counts[row] as number;
    (levels[row] as Int32Array)[at] = i;
    counts[row] = at + 1;
  }
  return levels;
}

interface Matched {
  samples: number;
  baseSamples: number;
}

/** Of the nodes from `from` on, before `until`: what goes through a hit, each sample once. */
function within(tree: Tree, hits: Uint8Array, from: number, until: number): Matched {
  const sum = { samples: 0, baseSamples: 0 };
  for (let i = from; i < until; ) {
    if (hits[i] === 1) {
      sum.samples += tree.total[i] as number;
      sum.baseSamples += tree.diff?.baseTotal[i] ?? 0;
      i = tree.end[i] as number;
    } else i++;
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

/** Text that finds exactly this name. */
export function exactPattern(name: string): string {
  return `/^${name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}$/`;
}
