/** Values of a comparison as text, in the unit of its normalisation. */
import type { Normalize } from "../api/types.ts";
import { cores, count, percent, signed } from "./format.ts";

export function normText(value: number, normalize: Normalize | null): string {
  if (normalize === "share") return percent(value);
  if (normalize === "absolute") return count(value);
  return cores(value);
}

export function normUnit(normalize: Normalize | null): string {
  if (normalize === "share") return "share";
  if (normalize === "absolute") return "samples";
  return "cores";
}

/** A change with its sign. */
export function changeText(value: number, normalize: Normalize | null): string {
  return signed(normText(value, normalize), value);
}

/** `0.05 → 0.62 cores`; shares carry their unit themselves. */
export function fromTo(before: number, after: number, normalize: Normalize | null): string {
  const unit = normalize === "share" ? "" : ` ${normUnit(normalize)}`;
  return `${normText(before, normalize)} → ${normText(after, normalize)}${unit}`;
}
