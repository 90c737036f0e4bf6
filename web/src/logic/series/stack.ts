/**
 * Series stacked for a chart. In: a series answer. Out: the step edges, and for each layer the running sum (cores) from
 * the bottom; the largest layer lies at the bottom. Steps that nobody covered stay null: a gap is no zero.
 */
import type { SeriesAnswer, SeriesLine } from "../../api/types.ts";
import { shareOf } from "../text/format.ts";
import { isWait } from "../text/unit.ts";
import type { Window } from "../time/time.ts";

export interface Layer {
  /** Label value; null for what the limit cut off. */
  value: string | null;
  /** The part of it that the layer stands for; null for all. */
  mode: Mode | null;
  samples: number;
  /** Nanoseconds of CPU time, or what the type counts. */
  amount: number;
  /** Of the CPU time of all layers. */
  share: number;
  /** Cores over the observed time. */
  mean: number;
  /** Cores of this layer alone, one a step. */
  cores: (number | null)[];
  /** Upper edge: this layer and all below it, one a step. */
  top: (number | null)[];
}

export type Mode = "user" | "kernel";

export interface Stack {
  /** Step edges, Unix milliseconds; the last is the end of the last step. */
  edges: number[];
  layers: Layer[];
  /** Sum of all layers, one a step; null where uncovered, and where less than half of the step was covered. */
  total: (number | null)[];
  capacity: (number | null)[];
  idle: (number | null)[];
  /** Times that no agent covered, and times that only a part of the nodes covered. */
  uncovered: Window[];
  partly: Window[];
  /** The highest total of a step that was watched for long enough to tell; where none was, of all. */
  peak: number;
  /** Observed time of each step, milliseconds: a step that was watched for half of its time counts half in a mean. */
  observed: number[];
  /** Means over the observed time. */
  meanTotal: number;
  meanCapacity: number;
  meanIdle: number | null;
}

/** Below this share a step counts as uncovered, above the second as whole: batches do not end on step edges. */
export const NOTHING = 0.02;
const WHOLE = 0.98;
/** A step that was watched for less says little: a sample or two may come out as more cores than there are. */
const TELLING = 0.5;
/**
 * Ticks of each CPU that a step may have beyond its length: the one before it and the one behind it may fall into it.
 */
const SPARE_TICKS = 2;
/** The same as a part of its CPUs, where ticks were rarer for a time than they are in the mean. */
const SPARE_PART = 0.1;

/** The total of each step that was watched for long enough to tell; null for others. */
export function telling({ total, observed, edges }: Stack): (number | null)[] {
  return total.map((level, i) => {
    const length = (edges[i + 1] as number) - (edges[i] as number);
    return (observed[i] as number) >= TELLING * length ? level : null;
  });
}

/** With `kernel`, the same window's time in the kernel of the same values, each value is two layers. */
export function stackOf(answer: SeriesAnswer, kernel: SeriesAnswer | null = null): Stack {
  const steps = answer.times.length;
  const edges = [...answer.times];
  const last = answer.times[steps - 1];
  if (last !== undefined) edges.push(Math.max(answer.until, last + 1));
  const covered = answer.times.map((_, i) => answer.covered[i] ?? 0);
  const byNode = covered.map((share, i) => answer.covered_by_node?.[i] ?? share);
  const running: (number | null)[] = covered.map((share) => (share > NOTHING ? 0 : null));
  const lines = linesOf(answer, kernel);
  const isTime = answer.is_time ?? true;
  const amount = lines.reduce((sum, line) => sum + line.amount, 0);
  const layers = lines.map((line): Layer => {
    for (let i = 0; i < steps; i++) {
      const cores = line.cores[i];
      // A sample proves that somebody watched, however short the covered part of the step was.
      if (cores !== null && cores !== undefined) running[i] = (running[i] ?? 0) + cores;
    }
    const top = [...running];
    const share = shareOf(line.amount, amount);
    const { value, mode, samples } = line;
    const cores = [...line.cores];
    return { value, mode, samples, amount: line.amount, share, mean: 0, cores, top };
  });
  // A layer whose steps were null before a later layer proved cover must not leave a hole there.
  for (const layer of layers) {
    for (let i = 0; i < steps; i++) if (layer.top[i] === null && running[i] !== null) layer.top[i] = 0;
  }
  const lengths = covered.map((_, i) => (edges[i + 1] as number) - (edges[i] as number));
  const watched = lengths.map((length, i) => length * (covered[i] as number));
  // Senders that give no account of what they watched: each step counts with its length.
  const observed = watched.some((time) => time > 0) ? watched : lengths;
  for (const layer of layers) {
    layer.mean =
      mean(
        running.map((total, i) => (total === null ? null : (layer.cores[i] ?? 0))),
        observed,
      ) ?? 0;
  }
  const cpus = answer.times.map((_, i) => answer.capacity[i] ?? null);
  // Threads that wait are as many as there are, whatever CPUs there are.
  const capacity = isWait(answer.type ?? "") ? cpus.map(() => null) : cpus;
  const idle = answer.times.map((_, i) => answer.idle[i] ?? null);
  const meanTotal = mean(running, observed) ?? 0;
  const samples = lines.reduce((sum, line) => sum + line.samples, 0);
  const periodMs = samples > 0 && isTime ? amount / 1e6 / samples : 0;
  settle({ layers, running, capacity, observed, lengths, periodMs });
  return {
    edges,
    layers,
    total: running,
    capacity,
    idle,
    uncovered: stretches(edges, covered, (share) => share <= NOTHING),
    partly: stretches(edges, byNode, (share, i) => (covered[i] ?? 0) > NOTHING && share < WHOLE),
    peak: highest(running),
    observed,
    meanTotal,
    meanCapacity: mean(cpus, observed) ?? 0,
    meanIdle: mean(idle, observed),
  };
}

interface Steps {
  layers: readonly Layer[];
  running: (number | null)[];
  capacity: readonly (number | null)[];
  observed: readonly number[];
  lengths: readonly number[];
  periodMs: number;
}

/**
 * Leaves out steps that were watched for too short a time to tell, unless all were; and where timers' ticks make more
 * of a step than there was of the CPUs, all layers are lowered to that. What is more than ticks explain stands: other
 * senders don't tell how many CPUs they have.
 */
function settle({ layers, running, capacity, observed, lengths, periodMs }: Steps): void {
  const tells = running.map(
    (total, i) => total !== null && (observed[i] as number) >= TELLING * (lengths[i] as number),
  );
  const some = tells.includes(true);
  running.forEach((total, i) => {
    if (total === null) return;
    const cpus = capacity[i] ?? 0;
    const spare = cpus * Math.max(SPARE_PART, (SPARE_TICKS * periodMs) / Math.max(1, observed[i] as number));
    const isOut = some && !tells[i];
    const factor = cpus > 0 && total > cpus && total <= cpus + spare ? cpus / total : 1;
    if (!isOut && factor === 1) return;
    const settled = (value: number | null) => (isOut || value === null ? null : value * factor);
    running[i] = settled(total);
    for (const layer of layers) {
      layer.cores[i] = settled(layer.cores[i] ?? null);
      layer.top[i] = settled(layer.top[i] ?? null);
    }
  });
}

interface Line {
  value: string | null;
  mode: Mode | null;
  cores: (number | null)[];
  samples: number;
  amount: number;
}

/** What the values come to: servers that know of time alone tell CPU seconds. */
function amountOf({ total, cpu_seconds }: Pick<SeriesLine, "total" | "cpu_seconds">): number {
  return total ?? (cpu_seconds ?? 0) * 1e9;
}

function linesOf({ series, other, times }: SeriesAnswer, kernel: SeriesAnswer | null): Line[] {
  const fits = kernel !== null && kernel.times.length === times.length && kernel.times[0] === times[0];
  const inKernel = new Map((fits ? kernel.series : []).map((line) => [line.value, line]));
  const lines = series.flatMap((line): Line[] => {
    if (!fits) return [{ ...line, amount: amountOf(line), mode: null }];
    const part = inKernel.get(line.value) ?? { cores: [], samples: 0, cpu_seconds: 0, total: 0 };
    const user = {
      value: line.value,
      mode: "user" as const,
      cores: line.cores.map((cores, i) => (cores === null ? null : Math.max(0, cores - (part.cores[i] ?? 0)))),
      samples: line.samples - part.samples,
      amount: amountOf(line) - amountOf(part),
    };
    const cores = line.cores.map((all, i) => (all === null ? null : (part.cores[i] ?? 0)));
    return [user, { value: line.value, mode: "kernel", cores, samples: part.samples, amount: amountOf(part) }];
  });
  if (other !== null) {
    const { cores, samples } = other;
    lines.push({ value: null, mode: null, cores, samples, amount: amountOf(other) });
  }
  return lines;
}

function stretches(edges: number[], covered: number[], wanted: (share: number, step: number) => boolean): Window[] {
  const out: Window[] = [];
  covered.forEach((share, i) => {
    if (!wanted(share, i)) return;
    const from = edges[i] as number;
    const until = edges[i + 1] as number;
    const last = out[out.length - 1];
    if (last !== undefined && last.until === from) last.until = until;
    else out.push({ from, until });
  });
  return out;
}

function highest(values: readonly (number | null)[]): number {
  return values.reduce((most: number, value) => Math.max(most, value ?? 0), 0);
}

function mean(values: (number | null)[], weights: readonly number[]): number | null {
  let sum = 0;
  let known = 0;
  values.forEach((value, i) => {
    if (value === null) return;
    sum += value * (weights[i] as number);
    known += weights[i] as number;
  });
  return known === 0 ? null : sum / known;
}

/** Layers on top of each other, or each as a line of its own. */
export type Draw = "stacked" | "lines";

/** The heights that are drawn of each layer, from the bottom, one a step: the upper edge, or the layer alone. */
export function heightsOf(stack: Stack, draw: Draw): (number | null)[][] {
  if (draw === "stacked") return stack.layers.map((layer) => layer.top);
  // A line that has no sample in a step that was watched is at zero there.
  return stack.layers.map(({ cores }) => stack.total.map((total, i) => (total === null ? null : (cores[i] ?? 0))));
}

/** The step that a moment lies in, or -1 outside of all. */
export function stepAt(edges: readonly number[], moment: number): number {
  let a = 0;
  let b = edges.length - 1;
  if (b < 1 || moment < (edges[0] as number) || moment >= (edges[b] as number)) return -1;
  while (b - a > 1) {
    const middle = (a + b) >>> 1;
    if ((edges[middle] as number) <= moment) a = middle;
    else b = middle;
  }
  return a;
}

/**
 * The layer at a height (cores) of a step, or -1 above all; of lines the nearest, none where it is further off than
 * `reach`.
 */
export function layerAt(stack: Stack, step: number, cores: number, draw: Draw = "stacked", reach = 0): number {
  if (draw === "lines") {
    const away = stack.layers.map((layer) => Math.abs((layer.cores[step] ?? 0) - cores));
    const nearest = Math.min(...away);
    return step >= 0 && nearest <= reach ? away.indexOf(nearest) : -1;
  }
  return stack.layers.findIndex((layer) => (layer.top[step] ?? 0) > cores);
}

/** What part of a step somebody watched. */
export function coveredShare({ observed, edges }: Stack, step: number): number {
  return shareOf(observed[step] ?? 0, (edges[step + 1] ?? 0) - (edges[step] ?? 0));
}

/** Mean cores of all layers within a range: what the eye compares. */
export function meanWithin(stack: Stack, range: Window): number | null {
  const within = stack.observed.map((observed, i) => {
    const [from, until] = [stack.edges[i] as number, stack.edges[i + 1] as number];
    const part = (Math.min(range.until, until) - Math.max(range.from, from)) / (until - from);
    return observed * Math.max(0, part);
  });
  return mean(stack.total, within);
}

/** The same where another stack's sum is drawn beside the layers. */
export function topOf(stack: Stack, beside: Stack | null, showCapacity: boolean, draw: Draw): number {
  const top = axisTop(stack, showCapacity, draw);
  return beside === null || beside.peak <= 0 ? top : Math.max(top, axisTop(beside, false));
}

/** The highest value of the axis: room above the peak; the capacity too where that does not flatten the rest. */
export function axisTop(stack: Stack, showCapacity: boolean, draw: Draw = "stacked"): number {
  const capacity = highest(stack.capacity);
  const peak = draw === "stacked" ? stack.peak : Math.max(0, ...stack.layers.map((layer) => highest(layer.cores)));
  const top = showCapacity ? Math.max(peak, capacity) : peak;
  return top > 0 ? top * 1.06 : 1;
}
