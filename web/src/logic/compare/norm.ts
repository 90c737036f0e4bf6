/**
 * Values of a comparison as text. In: a value as it was judged (a rate, a share or a count), and what numbers are told
 * in. Out: text in the unit that was chosen, of each side by what its own samples stand for; where none was chosen, in
 * the unit of what was judged.
 */
import type { DiffAnswer, DiffSide, Normalize } from "../../api/types.ts";
import { figureHead, figureText, type UnitChoice, type Worth } from "../text/figure.ts";
import { count, percent, shareOf } from "../text/format.ts";
import { amountHead, amountShort, rateHead, rateShort, SAMPLES, timeWords, type Unit } from "../text/unit.ts";

/** What the samples of one side stand for. */
export interface SideSums {
  samples: number;
  /** CPU time; null where the type is no time. */
  seconds: number | null;
  /** Cores, or the unit for each second; 0 where that is not known. */
  level: number;
  /** Samples of one of what is judged: values are counts in proportion. */
  perValue: number;
}

export type BothSums = readonly [SideSums, SideSums];

/** How values are told. */
export interface Told {
  normalize: Normalize | null;
  /** Of counts and rates; samples and cores where none is given. */
  unit?: Unit;
  /** Empty, and left out: as it was judged. */
  choice?: UnitChoice | "";
  sums?: BothSums | null;
}

export function sumsOfSides({
  normalize,
  base,
  comparison,
}: Pick<DiffAnswer, "normalize"> & Record<"base" | "comparison", Sums>): BothSums {
  const of = ({ samples, cpu_seconds, cores, rate }: Sums): SideSums => {
    const level = cores ?? rate ?? 0;
    const perValue = { share: samples, rate: shareOf(samples, level), absolute: 1 }[normalize];
    return { samples, seconds: cpu_seconds, level, perValue };
  };
  return [of(base), of(comparison)];
}

type Sums = Pick<DiffSide, "samples" | "cpu_seconds" | "cores" | "rate">;

export function worthOf({ samples, seconds, level }: SideSums, unit: Unit): Worth {
  return { samples, unit, secondsPerSample: shareOf(seconds ?? 0, samples), coresPerSample: shareOf(level, samples) };
}

/** Samples of one side, in the unit that was chosen. */
export function sideFigure(samples: number, at: 0 | 1, { unit = SAMPLES, choice = "samples", sums = null }: Told) {
  if (sums === null) return unit.name === "samples" ? count(samples) : amountShort(samples, unit);
  return figureText(samples, choice || "cores", worthOf(sums[at], unit));
}

/** The unit that was chosen instead of what was judged; null where it is that. */
export function chosenOf({ normalize, choice = "", sums = null }: Told): { choice: UnitChoice; sums: BothSums } | null {
  const isJudged = choice === "" || (choice === "cores" && normalize === "rate");
  if (isJudged || sums === null) return null;
  const hasLevels = sums.every(({ level, samples }) => level > 0 || samples === 0);
  return choice === "cores" && !hasLevels ? null : { choice, sums };
}

/** Of a value of that side: a count has no parts, but what rounding made. */
const samplesOf = (value: number, { perValue }: SideSums) => Math.round(value * perValue * 1000) / 1000;

export function asJudged(value: number, { normalize, unit = SAMPLES }: Told): string {
  if (normalize === "share") return percent(value);
  if (normalize === "absolute") return unit.name === "samples" ? count(value) : amountShort(value, unit);
  return rateShort(value, unit);
}

export function judgedUnit({ normalize, unit = SAMPLES }: Told): string {
  if (normalize === "share") return "share";
  return normalize === "absolute" ? amountHead(unit) : rateHead(unit);
}

/** A value of side A (0) or B (1). */
export function normText(value: number, at: 0 | 1, told: Told): string {
  const chosen = chosenOf(told);
  if (chosen === null) return asJudged(value, told);
  const side = chosen.sums[at];
  return figureText(samplesOf(value, side), chosen.choice, worthOf(side, told.unit ?? SAMPLES));
}

/** What such values are called. */
export function normUnit(told: Told): string {
  const chosen = chosenOf(told);
  return chosen === null ? judgedUnit(told) : figureHead(chosen.choice, told.unit ?? SAMPLES);
}

/** The same behind a number: `cores`, `of CPU time`. */
export function normWords(told: Told): string {
  const { unit = SAMPLES } = told;
  return chosenOf(told)?.choice === "time" && unit.isTime ? timeWords(unit) : normUnit(told);
}
