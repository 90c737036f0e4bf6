/** Arithmetic of time windows: what dragging, keys and presets do. In and out: Unix milliseconds, whole. */
import { isRelative, parseTime, type Window } from "./time.ts";

export type { Window } from "./time.ts";

/** No window is shorter: a sampler of 20 Hz says nothing about less. */
export const SHORTEST_MS = 1000;
/** The server answers for no longer window. */
export const LONGEST_MS = 400 * 86_400_000;

export function lengthOf(range: Window): number {
  return range.until - range.from;
}

/** In order and not below the shortest length, whatever the two ends were. */
export function ordered(a: number, b: number): Window {
  const from = Math.round(Math.min(a, b));
  return { from, until: Math.max(Math.round(Math.max(a, b)), from + SHORTEST_MS) };
}

/** The last part of a window that is longer than the server answers for. */
export function askable({ from, until }: Window): Window {
  return { from: Math.max(from, until - LONGEST_MS), until };
}

/** Moves as a whole; stops at the bounds without changing its length. */
export function move(range: Window, by: number, bounds: Window): Window {
  const length = lengthOf(range);
  const highest = Math.max(bounds.from, bounds.until - length);
  const from = Math.round(Math.min(Math.max(range.from + by, bounds.from), highest));
  return { from, until: from + length };
}

export type Edge = "from" | "until";

/** Moves one edge; it stops at the bounds and at the shortest length. */
export function moveEdge(range: Window, edge: Edge, to: number, bounds: Window): Window {
  if (edge === "from") {
    const from = Math.min(Math.max(to, bounds.from), range.until - SHORTEST_MS);
    return { from: Math.round(from), until: range.until };
  }
  const until = Math.max(Math.min(to, bounds.until), range.from + SHORTEST_MS);
  return { from: range.from, until: Math.round(until) };
}

/** Twice as long around the same middle, not beyond now. */
export function zoomOut(range: Window, now: number): Window {
  const half = lengthOf(range) / 2;
  const until = Math.min(range.until + half, Math.max(now, range.until));
  return askable({ from: Math.round(until - half * 4), until: Math.round(until) });
}

/** Shorter (`factor` below 1) or longer around a moment, which stays where it is on the screen; not beyond now. */
export function zoomAround(range: Window, moment: number, factor: number, now: number): Window {
  const length = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, lengthOf(range) * factor));
  const before = ((moment - range.from) / lengthOf(range)) * length;
  const until = Math.min(moment - before + length, Math.max(now, range.until));
  return { from: Math.round(until - length), until: Math.round(until) };
}

export function shift(range: Window, by: number): Window {
  return { from: Math.round(range.from + by), until: Math.round(range.until + by) };
}

/** The window of the same length that ends where this one begins. */
export function before(range: Window): Window {
  return shift(range, -lengthOf(range));
}

export function isSame(a: Window, b: Window): boolean {
  return a.from === b.from && a.until === b.until;
}

/** Where a window to compare with usually lies, in words. */
export function placesBefore(range: Window): readonly (readonly [string, Window])[] {
  return [
    ["just before B", before(range)],
    ["an hour earlier", shift(range, -3_600_000)],
    ["a day earlier", shift(range, -86_400_000)],
    ["a week earlier", shift(range, -604_800_000)],
    ["the same time", range],
  ];
}

/**
 * Both windows with an eighth of air on each side: what a chart must show so that both can be dragged; as much as can
 * be shown at once.
 */
export function around(a: Window, b: Window): Window {
  const from = Math.min(a.from, b.from);
  const until = Math.max(a.until, b.until);
  const air = (until - from) / 8;
  return askable({ from: Math.round(from - air), until: Math.round(until + air) });
}

export interface Pair {
  base: Window;
  comparison: Window;
}

/**
 * One window moved by `by`, as a whole or by an edge. Where lengths are locked, the other window follows with the same
 * edge; it is shifted where it would leave the bounds.
 */
export function dragged(
  pair: Pair,
  side: keyof Pair,
  grip: Edge | "body",
  by: number,
  bounds: Window,
  locked: boolean,
): Pair {
  const start = pair[side];
  const moved = grip === "body" ? move(start, by, bounds) : moveEdge(start, grip, start[grip] + by, bounds);
  const changed = { ...pair, [side]: moved };
  if (!locked || lengthOf(moved) === lengthOf(start)) return changed;
  const other = otherSide(side);
  return {
    ...changed,
    [other]: move(withLength(pair[other], lengthOf(moved), grip === "from" ? "from" : "until"), 0, bounds),
  };
}

/** Whether one window hides most of the other. */
export function overlapping({ base, comparison }: Pair): boolean {
  const shared = Math.min(base.until, comparison.until) - Math.max(base.from, comparison.from);
  return shared > Math.min(lengthOf(base), lengthOf(comparison)) / 2;
}

export function otherSide(side: keyof Pair): keyof Pair {
  return side === "base" ? "comparison" : "base";
}

/** Longer or shorter by moving one edge. */
export function withLength({ from, until }: Window, length: number, edge: Edge = "until"): Window {
  return edge === "until" ? { from, until: from + length } : { from: until - length, until };
}

/** A window of which a part (begin and end) may not count. */
export interface Pierced extends Window {
  except?: readonly [number, number] | null;
}

/** The time that counts. */
export function timesOf({ from, until, except }: Pierced): Window[] {
  if (except === null || except === undefined) return [{ from, until }];
  const [begin, end] = except;
  return [
    { from, until: Math.min(begin, until) },
    { from: Math.max(end, from), until },
  ].filter((window) => lengthOf(window) > 0);
}

/** Milliseconds of all of them. */
export function lengthOfAll(windows: readonly Window[]): number {
  return windows.reduce((sum, window) => sum + lengthOf(window), 0);
}

/** A window's two halves, of which the same time counts: what an A/A control compares. */
export function halves({ from, until, except = null }: Pierced): { base: Pierced; comparison: Pierced } {
  const times = timesOf({ from, until, except });
  let left = lengthOfAll(times) / 2;
  const within = times.find((window) => {
    if (lengthOf(window) >= left) return true;
    left -= lengthOf(window);
    return false;
  });
  const middle = Math.round((within?.from ?? from) + left);
  const half = (of: Window): Pierced =>
    except === null || except[1] <= of.from || except[0] >= of.until ? of : { ...of, except };
  return { base: half({ from, until: middle }), comparison: half({ from: middle, until }) };
}

export interface PairTexts {
  from: string;
  until: string;
  baseFrom: string;
  baseUntil: string;
}

/**
 * The two windows of a comparison. Side A is given, or derived: the equal window before one that somebody picked, the
 * first half of a range that only follows the present (side B is then the second half).
 */
export function pairOf(texts: PairTexts, now: number): Pair {
  const given = ordered(parseTime(texts.from, now) ?? now - 3_600_000, parseTime(texts.until, now) ?? now);
  const baseFrom = parseTime(texts.baseFrom, now);
  const baseUntil = parseTime(texts.baseUntil, now);
  if (baseFrom !== null && baseUntil !== null) return { base: ordered(baseFrom, baseUntil), comparison: given };
  if (!isRelative(texts.until)) return { base: before(given), comparison: given };
  return halves(given);
}

/** Both windows within a new chart: kept where they can be seen there, else laid out left and right. */
export function placeWithin(pair: Pair, chart: Window): Pair {
  const seen = (w: Window) => w.from < chart.until && w.until > chart.from && lengthOf(w) <= lengthOf(chart);
  if (seen(pair.base) && seen(pair.comparison)) return pair;
  const eighth = lengthOf(chart) / 8;
  return {
    base: ordered(chart.from + eighth, chart.from + 3 * eighth),
    comparison: ordered(chart.from + 5 * eighth, chart.from + 7 * eighth),
  };
}
