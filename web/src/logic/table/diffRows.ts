/** The table of a difference. In: the server's rows. Out: the wanted ones in the wanted order. */
import type { DiffTopRow, Measured } from "../../api/types.ts";
import type { UnitChoice } from "../text/figure.ts";
import { compareText } from "../text/names.ts";

/** More than any delta, and still exact to a millionth when one is added. */
const ABOVE_ALL = 1e9;

/** Which rows are wanted: all, those that differ, those that only one side has. */
export type Only = "" | "significant" | "new" | "gone";

/** Whether a state is among the wanted ones. */
export function isWanted(state: string, only: Only): boolean {
  return only === "" || (only === "significant" ? state !== "same" : state === only);
}

/** The rows as they may be marked: against a side without samples, none is. */
export function judgedRows(rows: readonly DiffTopRow[], hasBoth: boolean): readonly DiffTopRow[] {
  return hasBoth ? rows : rows.map((row) => ({ ...row, state: "same" }));
}

export const DIFF_SORT_KEYS = [
  "name",
  "beforeTime",
  "afterTime",
  "before",
  "after",
  "delta",
  "low",
  "state",
  "factor",
] as const;
export type DiffSortKey = (typeof DIFF_SORT_KEYS)[number];

export function diffRows(
  rows: readonly DiffTopRow[],
  key: DiffSortKey,
  descending: boolean,
  only: Only,
  matcher: ((name: string) => boolean) | null,
  measure: Measured = "total",
): DiffTopRow[] {
  const sign = descending ? -1 : 1;
  return rows
    .filter((row) => isWanted(row.state, only) && (matcher === null || matcher(row.name)))
    .sort((a, b) => {
      if (key === "name" || key === "state") return sign * compareText(a[key], b[key]) || compareText(a.name, b.name);
      return (
        sign * (sortValue(a, key, measure) - sortValue(b, key, measure)) ||
        Math.abs(b.delta) - Math.abs(a.delta) ||
        compareText(a.name, b.name)
      );
    });
}

/** The size of the largest delta, in either direction. */
export function largestDelta(rows: readonly DiffTopRow[]): number {
  return rows.reduce((most, { delta }) => Math.max(most, Math.abs(delta)), 0);
}

/**
 * A delta is ranked by its size, what differs before what may be chance: what vanished matters as much as what came.
 */
function sortValue(row: DiffTopRow, key: Exclude<DiffSortKey, "name" | "state">, measure: Measured): number {
  // Counts are by value: what has more of them has more time.
  if (key === "beforeTime") return measure === "self" ? row.base_self : row.base_total;
  if (key === "afterTime") return measure === "self" ? row.self : row.total;
  if (key === "before") return row.base_norm;
  if (key === "after") return row.norm;
  if (key === "delta") return Math.abs(row.delta) + (row.state === "same" ? 0 : ABOVE_ALL);
  // The bound nearest to zero: at least so much has changed.
  if (key === "low") return row.state === "same" ? 0 : Math.min(Math.abs(row.low), Math.abs(row.high));
  if (row.base_norm <= 0) return row.norm > 0 ? Number.MAX_VALUE : 1;
  return row.norm / row.base_norm;
}

/** Pixels from which on there is room for a name, both pairs of columns below, and the change. */
const LEAST_FOR_BOTH = 460;

/**
 * From how many pixels on the columns stand there that tell both sides of a row: CPU time, and what was compared in the
 * unit that was chosen; null for a pair that is not there. A narrow table has one pair: CPU time, unless another unit
 * was chosen.
 */
export function sidePairs(isTime: boolean, choice: UnitChoice | ""): { time: number | null; level: number | null } {
  if (!isTime) return { time: null, level: 0 };
  if (choice === "time") return { time: 0, level: null };
  return choice === "" ? { time: 0, level: LEAST_FOR_BOTH } : { time: LEAST_FOR_BOTH, level: 0 };
}
