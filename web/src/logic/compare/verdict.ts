/**
 * What a comparison found, in a line. In: how both sides were judged. Out: text, with what to do where nothing could be
 * told.
 */
import type { DiffAnswer } from "../../api/types.ts";
import { count, plural } from "../text/format.ts";

type Judged = Pick<DiffAnswer, "tested" | "significant"> & Record<"base" | "comparison", { samples: number }>;

/**
 * `functions`: how many differ that are each put together from all their frames, which finds what no frame by itself
 * shows. `causes`: how many frames explain what differs.
 */
export function verdictOf(
  { base, comparison, tested, significant }: Judged,
  functions: number,
  causes: number,
): string {
  if (base.samples === 0)
    return "A has no samples, there is nothing to compare B with: move A to where the chart shows something";
  if (comparison.samples === 0)
    return "B has no samples, there is nothing to compare A with: move B to where the chart shows something";
  if (tested === 0) return "too few samples to tell a difference: longer windows have more";
  if (significant === 0 && functions > 0)
    return `no significant change of a frame by itself; put together, ${plural(functions, "function")} of the table`;
  if (significant === 0) return "no significant change";
  const frames = `${count(significant)} of ${plural(tested, "frame")}`;
  return causes === 0 ? `${frames} changed, and no frame explains it` : `${plural(causes, "cause")} (${frames})`;
}

/** How much of A's own halves would be coloured. */
export function controlText({ base, comparison, significant, tested }: Judged): string {
  if (base.samples === 0 || comparison.samples === 0)
    return "A/A check: one half of A has no samples, so it tells nothing about noise";
  if (tested === 0) return "A/A check: too few samples in the halves of A to tell anything about noise";
  const found = `${count(significant)} of ${count(tested)}`;
  return significant > 0 ? `Baseline unstable: A/A check found ${found}` : `A/A check passed (${found})`;
}
