/**
 * Where a course changes its level, and from when to when there is one. In: a stack of the chart's steps. Out: change
 * points in the order of time, each with the two windows of equal length beside it that a comparison takes: of
 * covered time in which something ran.
 */
import { clock } from "../time/time.ts";
import { lengthOf, type Pair, type Window } from "../time/windows.ts";
import { type Stack, telling } from "./stack.ts";

export interface ChangePoint {
  /** Beginning of the first step of the new level, Unix milliseconds. */
  at: number;
  /** Where something starts or ends there is nothing on the other side to compare with. */
  kind: "changed" | "started" | "ended";
  /** Mean cores on both sides. */
  before: number;
  after: number;
  /** The last of the old level and the first of the new one, equally long; null where one side has none. */
  pair: Pair | null;
}

/** When there were samples: covered steps without any at either end are left out, where that is no chance. */
export interface Lifetime extends Window {
  /**
   * The step with the first and the last sample begins there; null where that may have been before, or may come
   * after.
   */
  started: number | null;
  ended: number | null;
}

/** Fewer steps say nothing of a level. */
const LEAST_STEPS = 4;
/**
 * How many standard errors apart two levels are that are called different, as many splits are tried: where each step
 * has its own chance, and at most, where neighbours are alike. A range of minutes has too few samples for more.
 */
const APART = 5.5;
const MOST_APART = 8;
/** So many samples a level has beyond what the other one would have: fewer come together by chance. */
const LEAST_SAMPLES = 20;
/** A level that changes by less is no change that anybody would look for. */
const LEAST_FACTOR = 1.25;
/** So many samples are missing where steps are empty, were it the same level: one in a thousand by chance. */
const MISSED_SAMPLES = 7;
const MOST_POINTS = 8;

/** The values that were measured, each with its step. */
interface Course {
  steps: number[];
  /** Sums of the values, of their squares, and of the squares of each one's distance to the next, before each place. */
  sums: Float64Array;
  squares: Float64Array;
  distances: Float64Array;
  /** Of a step at a level of one. */
  samples: number;
}

function courseOf(values: readonly (number | null)[], first: number, last: number, ofAll: number): Course {
  const steps: number[] = [];
  for (let step = first; step <= last; step++)
    if (values[step] !== null && values[step] !== undefined) steps.push(step);
  const sums = new Float64Array(steps.length + 1);
  const squares = new Float64Array(steps.length + 1);
  const distances = new Float64Array(steps.length + 1);
  steps.forEach((step, i) => {
    const value = values[step] as number;
    const next = values[steps[i + 1] ?? step] as number;
    sums[i + 1] = (sums[i] as number) + value;
    squares[i + 1] = (squares[i] as number) + value * value;
    distances[i + 1] = (distances[i] as number) + (next - value) ** 2;
  });
  const sum = sums[steps.length] as number;
  return { steps, sums, squares, distances, samples: sum > 0 ? ofAll / sum : 0 };
}

const between = (sums: Float64Array, from: number, until: number) => (sums[until] as number) - (sums[from] as number);

function meanOf({ sums }: Course, from: number, until: number): number {
  return between(sums, from, until) / (until - from);
}

interface Standing {
  from: number;
  until: number;
  score: number;
}

/**
 * How far apart levels have to be that scatter by so much. Values that are like their neighbours say less than as many
 * by chance: with a correlation r from one to the next, (1 + r) / (1 - r) times less.
 */
function neededApart({ distances }: Course, begin: number, end: number, from: number, until: number, variance: number) {
  // Von Neumann's ratio, without the steps between the two levels.
  const steps = [
    [begin, from],
    [from, until],
    [until, end],
  ] as const;
  const sum = steps.reduce((all, [a, b]) => all + (b - a > 1 ? between(distances, a, b - 1) : 0), 0);
  const count = end - begin;
  // Less than what chance alone makes of so many values is none.
  const alike = Math.min(0.99, Math.max(0, 1 - sum / (2 * variance * count) - 1 / Math.sqrt(count)));
  return Math.min(MOST_APART, APART * Math.sqrt((1 + alike) / (1 - alike)));
}

/**
 * The stretch within `begin` and `end` whose level is the most standard errors apart from that of all the rest there.
 * It may begin with the course or end with it: then the level changed once.
 */
function standingOut(course: Course, begin: number, end: number): Standing | null {
  const all = end - begin;
  let best: Standing | null = null;
  let most = 1;
  for (let from = begin; from <= end - LEAST_STEPS; from = Math.max(from + 1, begin + LEAST_STEPS)) {
    for (let until = from + LEAST_STEPS; until <= end; until++) {
      const [inside, outside] = [until - from, all - (until - from)];
      // Where the level comes back, there is enough of what came back, too.
      if (outside < LEAST_STEPS || (until < end && end - until < LEAST_STEPS)) continue;
      const mean = meanOf(course, from, until);
      const rest = (between(course.sums, begin, end) - mean * inside) / outside;
      const [low, high] = [Math.min(mean, rest), Math.max(mean, rest)];
      if (high < low * LEAST_FACTOR) continue;
      if ((high - low) * (mean > rest ? inside : outside) * course.samples < LEAST_SAMPLES) continue;
      const squares = between(course.squares, begin, end) - mean * mean * inside - rest * rest * outside;
      const variance = Math.max(0, squares) / (all - 2) + (high * 1e-3) ** 2;
      const apart = (high - low) / Math.sqrt(variance * (1 / inside + 1 / outside));
      if (apart <= APART * most) continue;
      const score = apart / neededApart(course, begin, end, from, until, variance);
      if (score > most) {
        most = score;
        best = { from, until, score };
      }
    }
  }
  return best;
}

/**
 * Places of the course at which its level changes, each with how clearly; what is found divides what is looked
 * through next.
 */
function boundaries(course: Course): Map<number, number> {
  const found = new Map<number, number>();
  const parts: [number, number][] = [[0, course.steps.length]];
  for (let part = parts.pop(); part !== undefined && found.size < MOST_POINTS; part = parts.pop()) {
    const [begin, end] = part;
    const best = standingOut(course, begin, end);
    if (best === null) continue;
    const { from, until, score } = best;
    const edges = [begin, from, until, end].filter((at, i, list) => i === 0 || at > (list[i - 1] as number));
    for (const at of edges.slice(1, -1)) found.set(at, score);
    for (let i = 1; i < edges.length; i++) parts.unshift([edges[i - 1] as number, edges[i] as number]);
  }
  return found;
}

/** From when to when there were samples in steps that were watched; null where there are none. */
export function lifetimeOf(stack: Stack): Lifetime | null {
  const { edges, layers } = stack;
  const values = telling(stack);
  const watched = values.flatMap((value, step) => (value === null ? [] : [step]));
  const ran = watched.filter((step) => (values[step] as number) > 0);
  const [first, last] = [ran[0], ran.at(-1)];
  if (first === undefined || last === undefined) return null;
  const samples = layers.reduce((sum, layer) => sum + layer.samples, 0);
  const perStep = samples / watched.filter((step) => step >= first && step <= last).length;
  const isMissing = (steps: number) => steps * perStep > MISSED_SAMPLES;
  const isStart = isMissing(watched.filter((step) => step < first).length);
  const isEnd = isMissing(watched.filter((step) => step > last).length);
  const whole = [watched[0] as number, watched.at(-1) as number] as const;
  return {
    // The step in which it started was empty in part.
    from: edges[isStart ? Math.min(first + 1, last) : whole[0]] as number,
    until: edges[isEnd ? Math.max(last, first + 1) : whole[1] + 1] as number,
    started: isStart ? (edges[first] as number) : null,
    ended: isEnd ? (edges[last + 1] as number) : null,
  };
}

/** Stretches of steps that were watched, within a window. */
export function watchedWithin(stack: Stack, window: Window): Window[] {
  const out: Window[] = [];
  telling(stack).forEach((value, step) => {
    const from = Math.max(window.from, stack.edges[step] as number);
    const until = Math.min(window.until, stack.edges[step + 1] as number);
    if (value === null || from >= until) return;
    const last = out.at(-1);
    if (last?.until === from) last.until = until;
    else out.push({ from, until });
  });
  return out;
}

/** The longest stretch; of equally long ones the last, or the first. */
export function longestOf(stretches: readonly Window[], last: boolean): Window | null {
  return stretches.reduce<Window | null>(
    (best, one) =>
      best === null || lengthOf(one) > lengthOf(best) || (last && lengthOf(one) === lengthOf(best)) ? one : best,
    null,
  );
}

/** All changes of the level, in the order of time: with them the start and the end, where they lie within. */
export function changePoints(stack: Stack): ChangePoint[] {
  const life = lifetimeOf(stack);
  if (life === null) return [];
  const { edges } = stack;
  const values = telling(stack);
  const samples = stack.layers.reduce((sum, layer) => sum + layer.samples, 0);
  const course = courseOf(values, edges.indexOf(life.from), edges.indexOf(life.until) - 1, samples);
  const places = [...boundaries(course).keys()].sort((a, b) => a - b);
  const ends = [0, ...places, course.steps.length];
  const points = places.map((place, i): ChangePoint => {
    const [begin, end] = [ends[i] as number, ends[i + 2] as number];
    const at = edges[course.steps[place] as number] as number;
    // The step in which it happened is of both levels, and may be the one before or the first of the new one.
    const [last, first] = [Math.max(begin + 1, place - 1), Math.min(end - 1, place + 1)];
    const edge = (of: number) => edges[course.steps[of] as number] as number;
    const old = { from: edge(begin), until: edges[(course.steps[last - 1] as number) + 1] as number };
    const fresh = { from: edge(first), until: edges[(course.steps[end - 1] as number) + 1] as number };
    return {
      at,
      kind: "changed",
      before: meanOf(course, begin, last),
      after: meanOf(course, first, end),
      pair: equalBeside(longestOf(watchedWithin(stack, old), true), longestOf(watchedWithin(stack, fresh), false)),
    };
  });
  const all = course.steps.length;
  if (life.started !== null)
    points.unshift({
      at: life.started,
      kind: "started",
      before: 0,
      after: meanOf(course, 0, ends[1] as number),
      pair: null,
    });
  if (life.ended !== null)
    points.push({
      at: life.ended,
      kind: "ended",
      before: meanOf(course, ends.at(-2) as number, all),
      after: 0,
      pair: null,
    });
  return points;
}

/** The end of the one and the beginning of the other, as long as the shorter of both. */
function equalBeside(old: Window | null, fresh: Window | null): Pair | null {
  if (old === null || fresh === null) return null;
  const length = Math.min(lengthOf(old), lengthOf(fresh));
  return {
    base: { from: old.until - length, until: old.until },
    comparison: { from: fresh.from, until: fresh.from + length },
  };
}

/** `01:38:33: 0.042 → 0.088 cores`, `01:37:43: started`: levels as `levelText` writes them, in `unit`. */
export function changeText(
  { at, kind, before, after }: ChangePoint,
  levelText: (level: number) => string,
  unit: string,
): string {
  return `${clock(at)}: ${kind === "changed" ? `${levelText(before)} → ${levelText(after)} ${unit}` : kind}`;
}

/** A change by so much of the largest one is as large: what comes and goes leads to its beginning. */
const AS_LARGE = 0.9;

/** The first of the largest steps of the level that can be compared across. */
export function largestChange(points: readonly ChangePoint[]): (ChangePoint & { pair: Pair }) | null {
  const able = points.filter((point): point is ChangePoint & { pair: Pair } => point.pair !== null);
  const size = ({ before, after }: ChangePoint) => Math.abs(after - before);
  const largest = Math.max(0, ...able.map(size));
  return able.find((point) => size(point) >= AS_LARGE * largest) ?? null;
}
