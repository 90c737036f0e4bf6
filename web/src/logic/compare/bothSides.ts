/** CPU time of both sides in a row of a judged table, where the type is time. */
import type { DiffTopRow, TopAnswer } from "../../api/types.ts";
import { shareOf } from "../text/format.ts";

type Counts = Pick<DiffTopRow, "base_total" | "base_self" | "total" | "self">;
type Sides = Pick<TopAnswer<DiffTopRow>, "base_samples" | "base_cpu_seconds" | "samples" | "cpu_seconds" | "measure">;

/**
 * Seconds on side A and side B, of what was compared: all of a function, or what it took itself; null where the type is
 * no time.
 */
export function cpuSecondsOf(row: Counts, answer: Sides): { before: number | null; after: number | null } {
  const isSelf = answer.measure === "self";
  // Counts are by value: a part of the counts is that part of the time.
  const part = (count: number, whole = 0, seconds: number | null = null) =>
    seconds === null ? null : seconds * shareOf(count, whole);
  return {
    before: part(isSelf ? row.base_self : row.base_total, answer.base_samples, answer.base_cpu_seconds),
    after: part(isSelf ? row.self : row.total, answer.samples, answer.cpu_seconds),
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
