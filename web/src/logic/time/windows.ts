/** Arithmetic of time windows: what buttons, the wheel and presets do. In and out: Unix milliseconds, whole. */
import { isRelative, parseTime, type Window } from "./time.ts";

export type { Window } from "./time.ts";

/** No window is shorter: a sampler of 20 Hz says nothing about less. */
export const SHORTEST_MS = 1000;
const HOUR_MS = 3_600_000;
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

/** Texts that are no time stand for the hour up to now. */
export function windowOf({ from, until }: { from: string; until: string }, now: number): Window {
  return ordered(parseTime(from, now) ?? now - HOUR_MS, parseTime(until, now) ?? now);
}

/** The last part of a window that is longer than the server answers for. */
export function askable({ from, until }: Window): Window {
  return { from: Math.max(from, until - LONGEST_MS), until };
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

/** Both windows as the address has them, in Unix milliseconds. */
export function pairTexts({ base, comparison }: Pair): PairTexts {
  return {
    from: String(comparison.from),
    until: String(comparison.until),
    baseFrom: String(base.from),
    baseUntil: String(base.until),
  };
}

/**
 * The two windows of a comparison. Side A is given, or derived: the equal window before one that somebody picked, the
 * first half of a range that only follows the present (side B is then the second half).
 */
export function pairOf(texts: PairTexts, now: number): Pair {
  const given = windowOf(texts, now);
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

/** What has to be known for the choice of a baseline: the window that is looked at, and as much before it. */
export function historyOf(given: Window): Window {
  return { from: given.from - lengthOf(given), until: given.until };
}

/**
 * Where to go on behind an answer that was cut: the window's begin and the last moment that is told, in milliseconds.
 * `skips`: all that is told lies in the begin's millisecond, whose rest can't be come to.
 */
export function goOn(from: number, last: number): { from: number; skips: boolean } {
  const next = Math.floor(last);
  return next > from ? { from: next, skips: false } : { from: Math.floor(from) + 1, skips: true };
}
