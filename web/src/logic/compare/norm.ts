/** Values of a comparison as text, in the unit of its normalisation: a share, or the unit of the type. */
import type { Normalize } from "../../api/types.ts";
import { count, percent, signed } from "../text/format.ts";
import { amountHead, amountShort, rateHead, rateShort, SAMPLES, type Unit } from "../text/unit.ts";

export function normText(value: number, normalize: Normalize | null, unit: Unit = SAMPLES): string {
  if (normalize === "share") return percent(value);
  if (normalize === "absolute") return unit.name === "samples" ? count(value) : amountShort(value, unit);
  return rateShort(value, unit);
}

export function normUnit(normalize: Normalize | null, unit: Unit = SAMPLES): string {
  if (normalize === "share") return "share";
  return normalize === "absolute" ? amountHead(unit) : rateHead(unit);
}

/** A change with its sign. */
export function changeText(value: number, normalize: Normalize | null, unit: Unit = SAMPLES): string {
  return signed(normText(value, normalize, unit), value);
}

/**
 * `0.05 → 0.62 cores` of one selection at two times, `A 0.593, B 0.155 cores` of anything else: an arrow reads like a
 * change in time. Shares carry their unit themselves.
 */
export function fromTo(
  before: number,
  after: number,
  normalize: Normalize | null,
  unit: Unit = SAMPLES,
  inTurn = true,
): string {
  const name = normalize === "share" ? "" : ` ${normUnit(normalize, unit)}`;
  const [a, b] = [normText(before, normalize, unit), normText(after, normalize, unit)];
  return `${inTurn ? `${a} → ${b}` : `A ${a}, B ${b}`}${name}`;
}
