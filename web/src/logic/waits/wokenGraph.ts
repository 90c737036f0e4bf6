/**
 * Who ended the waits of a graph, as a graph above it. In: the waits' tree, what of it is zoomed, and what the server
 * tells of wakers. Out: what is asked for beside the selection, and words.
 */
import { exactPattern, serverPattern } from "../flame/search.ts";
import type { LabelMatcher } from "../labels/selector.ts";
import { duration, percent, shareOf } from "../text/format.ts";
import type { Transform } from "../transform/list.ts";
import { type FrameMatch, matchOf, pathMatchOf } from "../tree/frameMatch.ts";
import { isRow, rowMatchers, titleOf } from "../tree/rows.ts";
import { frameName, kindName, moduleName, ROOT, type Tree } from "../tree/tree.ts";

/** Labels of the rows above wakers' stacks, outermost first. */
export const WAKER_ROWS = "process,thread";
/** As the server calls what stands for whoever is not known. */
const NOBODY = "[no waker known]";

/** Waits whose wakers are asked for. */
export interface WokenOf {
  /** Values of the rows above the zoomed frame. */
  rows: readonly LabelMatcher[];
  match: FrameMatch | { match: string } | null;
  /** The zoomed frame, or the one that the graph is of; empty: all waits count. */
  name: string;
  /** More waits count than are in sight, since the server does not know the place of what is looked at. */
  isWider: boolean;
}

/** What leaves only stacks with a function. */
const NARROWING: ReadonlySet<Transform["op"]> = new Set(["focus", "sandwich"]);

/** `transforms`: what was done to the tree, without those that found nothing to do. */
export function wokenOf(tree: Tree, focus: number, transforms: readonly Transform[]): WokenOf {
  const narrowed = transforms.filter(({ op }) => NARROWING.has(op));
  const only = narrowed.at(-1)?.name;
  const match = only === undefined ? null : { match: serverPattern(exactPattern(only)) };
  if (focus === ROOT && only !== undefined) return { rows: [], match, name: only, isWider: narrowed.length > 1 };
  const isChanged = transforms.length > 0;
  let at = focus;
  // What was folded is asked for by its parent.
  while (at !== ROOT && kindName(tree, at) === "trimmed") at = tree.parent[at] as number;
  const name = focus === ROOT ? "" : titleOf(tree, focus);
  const rows = rowMatchers(tree, at);
  if (at === ROOT || isRow(tree, at)) {
    // In a sandwich a row is the outermost caller: the callers on the way to it are not asked for.
    const isWider = at !== focus || narrowed.length > 1 || tree.shape === "sandwich";
    return { rows, match, name, isWider };
  }
  const path = isChanged ? null : pathMatchOf(tree, at);
  const key = { name: frameName(tree, at), module: moduleName(tree, at), kind: kindName(tree, at) };
  return { rows, match: path ?? matchOf(key), name, isWider: path === null || at !== focus };
}

/** Of how much waiting somebody is known: `known of 9 s of 10 s (90 %); of 1 s nobody is known`. */
export function knownText({ known, unknown }: { known: number; unknown: number }, secondsPerCount: number): string {
  const time = (counts: number) => duration(counts * secondsPerCount);
  const whole = known + unknown;
  if (unknown === 0) return `known of all ${time(whole)}`;
  if (known === 0) return `nobody is known of all ${time(whole)}`;
  const share = percent(shareOf(known, whole));
  return `known of ${time(known)} of ${time(whole)} (${share}); of ${time(unknown)} nobody is known`;
}

/** Why of some waits nobody is known. */
export const WHY_UNKNOWN =
  "Waits that go on behind the window have no end yet; of others the end was not sampled, or lay in a time in which " +
  "waits were not observed. Senders other than agents may say nothing of it.";

const isNobody = (tree: Tree, node: number) => kindName(tree, node) === "unknown" && frameName(tree, node) === NOBODY;

/** Whether nobody is known of all of a row's waits. */
function isOfNobody(tree: Tree, row: number): boolean {
  for (let at = row; at < (tree.end[row] as number); at++)
    if (isRow(tree, at) ? tree.self[at] !== 0 : !isNobody(tree, at)) return false;
  return true;
}

/** What a frame of such a graph stands for. */
export function wakerWords(tree: Tree, node: number): string {
  if (node === ROOT) return "all of these waits, by who ended them";
  if (isNobody(tree, node)) return "waits that go on, and those whose end was not sampled or not observed";
  if (!isRow(tree, node)) return "waits that were ended in it, or in what it calls";
  return isOfNobody(tree, node) ? "waits that nobody is known to have ended" : "waits that it ended";
}
