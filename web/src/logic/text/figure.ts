/**
 * A number of samples in the unit that was chosen: cores, CPU time, samples or a share. In: samples, and what one
 * stands for. Out: text. Of types that are no time, cores are their rate, and CPU time is their amount.
 */
import { cores, count, duration, percent, shareOf } from "./format.ts";
import {
  amountHead,
  amountShort,
  amountText,
  rateHead,
  rateShort,
  rateText,
  timeHead,
  timeText,
  type Unit,
} from "./unit.ts";

export const UNITS = ["cores", "time", "samples", "share"] as const;
export type UnitChoice = (typeof UNITS)[number];

/** What one sample of an answer stands for. */
export interface Worth {
  secondsPerSample: number;
  coresPerSample: number;
  /** All of the window. */
  samples: number;
  unit: Unit;
}

/** Without the unit's name, but where the number alone says too little. */
export function figureText(samples: number, choice: UnitChoice, worth: Worth): string {
  const { unit } = worth;
  if (choice === "share") return percent(shareOf(samples, worth.samples));
  if (choice === "cores") return rateShort(samples * worth.coresPerSample, unit);
  if (choice === "time" && unit.isTime) return duration(samples * worth.secondsPerSample);
  return unit.name === "samples" ? count(samples) : amountShort(samples, unit);
}

/** The same with the unit's name: `0.25 cores`, `15.0 s of CPU time`. */
export function figureWords(samples: number, choice: UnitChoice, worth: Worth): string {
  const { unit } = worth;
  if (choice === "share") return percent(shareOf(samples, worth.samples));
  if (choice === "cores") return rateText(samples * worth.coresPerSample, unit);
  if (choice === "time" && unit.isTime) return timeText(samples * worth.secondsPerSample, unit);
  return amountText(samples, unit);
}

/** What such numbers are called. */
export function figureHead(choice: UnitChoice, unit: Unit): string {
  if (choice === "share") return "share";
  if (choice === "cores") return rateHead(unit);
  return choice === "time" && unit.isTime ? timeHead(unit) : amountHead(unit);
}

/** What stands beside it: a share alone would hide the amount, and an amount alone the share. */
export function besideOf(choice: UnitChoice): UnitChoice {
  return choice === "share" ? "cores" : "share";
}

/** What a level of a chart, in cores, is multiplied by, and what it is in then. */
export interface Scale {
  factor: number;
  unit: string;
}

/**
 * Of a chart: a rate has no total, so that CPU time is told for each second. Without a capacity there is no share of
 * it, and of types that are no time nothing but their own rate.
 */
export function scaleOf(choice: UnitChoice, isTime: boolean, samplesPerSecond: number, capacity: number): Scale | null {
  if (!isTime || choice === "cores") return null;
  if (choice === "time") return { factor: 1000, unit: "ms/s" };
  if (choice === "samples") return samplesPerSecond > 0 ? { factor: samplesPerSecond, unit: "samples/s" } : null;
  return capacity > 0 ? { factor: 100 / capacity, unit: "% of CPUs" } : null;
}

/** A level in cores, in the unit of the scale, without its name. */
export function scaled(level: number, scale: Scale | null): string {
  return cores(scale === null ? level : level * scale.factor);
}
