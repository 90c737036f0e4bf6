/** CPU time of both sides in a row of a judged table, where the type is time. */
import type { DiffTopRow, Normalize, TopAnswer } from "../../api/types.ts";
import { shareOf } from "../text/format.ts";
import type { BothSums } from "./norm.ts";

type Counts = Pick<DiffTopRow, "base_total" | "base_self" | "total" | "self">;
type Values = Counts & Pick<DiffTopRow, "base_norm" | "norm">;
type Sides = Pick<TopAnswer<DiffTopRow>, "base_samples" | "base_cpu_seconds" | "samples" | "cpu_seconds" | "measure">;

/** What was compared of a row, as counts of both sides: all of it, or what it took itself. */
export function countsOf(row: Counts, { measure }: Pick<Sides, "measure">): [before: number, after: number] {
  return measure === "self" ? [row.base_self, row.self] : [row.base_total, row.total];
}

/** What samples of a table's sides stand for: values are in proportion to counts, in the largest row as in all. */
export function sumsOfTable(
  answer: Sides & { normalize?: Normalize; rows: readonly Values[] },
  // A table says its levels only where it was judged by them.
  known: BothSums | null = null,
): BothSums {
  const of = (at: 0 | 1, samples: number, seconds: number | null) => {
    let [most, counted] = [0, 0];
    for (const row of answer.rows) {
      const value = at === 0 ? row.base_norm : row.norm;
      if (value > most) [most, counted] = [value, countsOf(row, answer)[at]];
    }
    const perValue = shareOf(counted, most);
    const isRate = (answer.normalize ?? "rate") === "rate";
    const level = isRate ? shareOf(samples, perValue) : (known?.[at].level ?? 0);
    return { samples, seconds, level, perValue };
  };
  const { base_samples = 0, base_cpu_seconds = null, samples, cpu_seconds } = answer;
  return [of(0, base_samples, base_cpu_seconds), of(1, samples, cpu_seconds)];
}

/**
 * Seconds on side A and side B, of what was compared: all of a function, or what it took itself; null where the type is
 * no time.
 */
export function cpuSecondsOf(row: Counts, answer: Sides): { before: number | null; after: number | null } {
  const [was, is] = countsOf(row, answer);
  // Counts are by value: a part of the counts is that part of the time.
  const part = (count: number, whole = 0, seconds: number | null = null) =>
    seconds === null ? null : seconds * shareOf(count, whole);
  return {
    before: part(was, answer.base_samples, answer.base_cpu_seconds),
    after: part(is, answer.samples, answer.cpu_seconds),
  };
}

/** What a table of values says of its own judgement. */
export function judgedText(answer: Pick<TopAnswer<DiffTopRow>, "tested" | "significant" | "confidence">): string {
  const { tested = 0, significant = 0, confidence = 0.95 } = answer;
  if (tested === 0) return "too few samples to tell a difference";
  const chance = Math.round((1 - confidence) * 1000) / 10;
  const found = significant === 0 ? "no significant change" : `${significant} of ${tested} changed`;
  return `${found}; false discovery rate of this table: ${chance} %`;
}
