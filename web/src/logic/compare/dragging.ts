/**
 * How the two windows of a comparison are moved: by hand, by keys, to usual places. In and out: Unix milliseconds,
 * whole.
 */
import { before, lengthOf, type Pair, SHORTEST_MS, shift, type Window } from "../time/windows.ts";

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

/** Where a window to compare with usually lies, in words. */
export function placesBefore(range: Window): readonly (readonly [string, Window])[] {
  return [
    ["previous window", before(range)],
    ["an hour earlier", shift(range, -3_600_000)],
    ["a day earlier", shift(range, -86_400_000)],
    ["a week earlier", shift(range, -604_800_000)],
    ["same window", range],
  ];
}

/** What of a range lies in none of the windows, in order. */
export function uncovered(range: Window, windows: readonly Window[]): Window[] {
  const out: Window[] = [];
  let from = range.from;
  for (const window of [...windows].sort((a, b) => a.from - b.from)) {
    if (window.from > from && from < range.until) out.push({ from, until: Math.min(window.from, range.until) });
    from = Math.max(from, window.until);
  }
  if (from < range.until) out.push({ from, until: range.until });
  return out;
}
