/**
 * Where a course changes its level most. In: means over equal steps, null where nobody watched. Out: the last steps before the change and the
 * first behind it, or null where no change stands out of the course's own scatter.
 */
import type { Window } from "./time.ts";
import type { Pair } from "./windows.ts";

export interface Jump {
  /** Steps, `until` excluded, of the level before and of the one that followed. */
  before: { from: number; until: number; mean: number };
  after: { from: number; until: number; mean: number };
}

/** Fewer steps say nothing of a level. */
const LEAST_STEPS = 4;
/** How many standard errors apart two levels are that are called different: neighbours are alike, and many splits are tried. */
const APART = 8;
/** A level that changes by less is no jump that anybody would look for. */
const LEAST_FACTOR = 1.25;

/** The values that were measured, each with its step. */
interface Course {
  steps: number[];
  /** Sums of the values and of their squares before each place. */
  sums: Float64Array;
  squares: Float64Array;
}

function courseOf(values: readonly (number | null)[]): Course {
  const steps: number[] = [];
  values.forEach((value, step) => {
    if (value !== null) steps.push(step);
  });
  const sums = new Float64Array(steps.length + 1);
  const squares = new Float64Array(steps.length + 1);
  steps.forEach((step, i) => {
    const value = values[step] as number;
    sums[i + 1] = (sums[i] as number) + value;
    squares[i + 1] = (squares[i] as number) + value * value;
  });
  return { steps, sums, squares };
}

function meanOf({ sums }: Course, from: number, until: number): number {
  return ((sums[until] as number) - (sums[from] as number)) / (until - from);
}

/**
 * The stretch whose level is the most standard errors apart from that of all the rest. It may begin with the course or end with it: then the
 * level changed once.
 */
function standingOut(course: Course): [from: number, until: number] | null {
  const all = course.steps.length;
  let best: [number, number] | null = null;
  let most = APART;
  for (let from = 0; from <= all - LEAST_STEPS; from = Math.max(from + 1, LEAST_STEPS)) {
    for (let until = from + LEAST_STEPS; until <= all; until++) {
      const [inside, outside] = [until - from, all - (until - from)];
      // Where the level comes back, there is enough of what came back, too.
      if (outside < LEAST_STEPS || (until < all && all - until < LEAST_STEPS)) continue;
      const mean = meanOf(course, from, until);
      const rest = ((course.sums[all] as number) - mean * inside) / outside;
      const [low, high] = [Math.min(mean, rest), Math.max(mean, rest)];
      if (high < low * LEAST_FACTOR) continue;
      const squares = (course.squares[all] as number) - mean * mean * inside - rest * rest * outside;
      const variance = Math.max(0, squares) / (all - 2) + (high * 1e-3) ** 2;
      const score = (high - low) / Math.sqrt(variance * (1 / inside + 1 / outside));
      if (score > most) [most, best] = [score, [from, until]];
    }
  }
  return best;
}

export function jumpOf(values: readonly (number | null)[]): Jump | null {
  const course = courseOf(values);
  const found = standingOut(course);
  if (found === null) return null;
  const [from, until] = found;
  const at = from > 0 ? from : until;
  const end = from > 0 ? until : course.steps.length;
  const part = (a: number, b: number) => ({
    from: course.steps[a] as number,
    until: (course.steps[b - 1] as number) + 1,
    mean: meanOf(course, a, b),
  });
  // The step in which it happened is of both levels.
  return { before: part(0, at - 1), after: part(at + 1, end) };
}

/** Both sides of a jump as windows to compare; `edges` has the beginning of each step, and the end of the last one. */
export function pairAt({ before, after }: Jump, edges: readonly number[]): Pair {
  const window = ({ from, until }: Jump["before"]): Window => ({
    from: edges[from] as number,
    until: edges[until] as number,
  });
  return { base: window(before), comparison: window(after) };
}
