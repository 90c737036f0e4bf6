/**
 * Which side A a comparison takes where nobody chose one. In: cores over the time before and in the window that is
 * looked at. Out: two windows of equal length in covered time in which something ran, and in words what was chosen
 * and why.
 */
import { type Lifetime, lifetimeOf, longestOf, watchedWithin } from "../series/changePoints.ts";
import type { Stack } from "../series/stack.ts";
import { duration } from "../text/format.ts";
import { clock } from "../time/time.ts";
import { before, lengthOf, type Pair, SHORTEST_MS, type Window } from "../time/windows.ts";

export interface Baseline extends Pair {
  /** What A is, and why it is no other window. */
  said: string;
}

/** A window before another one is worth taking from this part of its length on. */
const ENOUGH = 0.25;
/** Steps of the chart don't end where windows do. */
const WHOLE = 0.98;

/**
 * `isPicked`: the window was chosen, and does not only follow the present; then A lies before it. Otherwise, and
 * where there is too little before it, A and B are the halves of what ran in it.
 */
export function baselineOf(stack: Stack, given: Window, isPicked: boolean): Baseline {
  const usual = before(given);
  const life = lifetimeOf(stack);
  if (life === null)
    return { base: usual, comparison: given, said: "Baseline: previous window; nothing ran there, or in B" };
  if (isPicked) {
    const stretches = watchedWithin(stack, {
      from: Math.max(life.from, usual.from),
      until: Math.min(life.until, given.from),
    });
    const length = lengthOf(given);
    const last = stretches.findLast((stretch) => lengthOf(stretch) >= ENOUGH * length);
    if (last !== undefined && lengthOf(last) >= WHOLE * length)
      return { base: usual, comparison: given, said: `Baseline: previous window (${duration(length / 1000)})` };
    if (last !== undefined) {
      const known = lengthOf(last);
      const why = whyNot(life, last, usual);
      const said = `Baseline: the ${duration(known / 1000)} until ${clock(last.until)}, B as long: ${why}`;
      return { base: last, comparison: { from: given.from, until: given.from + known }, said };
    }
  }
  const within = { from: Math.max(life.from, given.from), until: Math.min(life.until, given.until) };
  const ran = longestOf(watchedWithin(stack, within), true);
  if (ran === null || lengthOf(ran) < 2 * SHORTEST_MS)
    return {
      base: usual,
      comparison: given,
      said: "Baseline: previous window; too little ran before B, or in it, to halve it",
    };
  const isAll = lengthOf(ran) >= WHOLE * lengthOf(given);
  const range = isAll ? given : ran;
  const half = Math.floor(lengthOf(range) / 2);
  const middle = range.from + half;
  const of = isAll ? "this range" : "what can be compared of it";
  const why = isPicked || !isAll ? `: ${whyNot(life, range, isPicked && isAll ? usual : given)}` : "";
  return {
    base: { from: range.from, until: middle },
    comparison: { from: middle, until: middle + half },
    said: `Baseline: first half of ${of}, B the second${why}`,
  };
}

/** Why a window is not as long as was wanted, or no earlier one. */
function whyNot({ started, ended, until: last }: Lifetime, { from, until }: Window, wanted: Window): string {
  if (started !== null && from >= started) return `it started at ${clock(started)}`;
  const late = from - wanted.from;
  const early = wanted.until - until;
  if (late >= early) return `no agent covered what was before ${clock(from)}`;
  if (ended !== null && until >= last) return `it ended at ${clock(ended)}`;
  return `nothing is known yet of what came after ${clock(until)}`;
}
