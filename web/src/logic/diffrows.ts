/** The table of a difference. In: the server's rows. Out: the wanted ones in the wanted order. */
import type { DiffTopRow } from "../api/types.ts";
import { compareText } from "./functions.ts";

/** More than any delta, and still exact to a millionth when one is added. */
const ABOVE_ALL = 1e9;

export type DiffSortKey = "name" | "before" | "after" | "delta" | "factor";

export function diffRows(
  rows: readonly DiffTopRow[],
  key: DiffSortKey,
  descending: boolean,
  onlySignificant: boolean,
  matcher: ((name: string) => boolean) | null,
): DiffTopRow[] {
  const sign = descending ? -1 : 1;
  return rows
    .filter((row) => !(onlySignificant && row.state === "same") && (matcher === null || matcher(row.name)))
    .sort((a, b) => {
      if (key === "name") return sign * compareText(a.name, b.name);
      return (
        sign * (sortValue(a, key) - sortValue(b, key)) ||
        Math.abs(b.delta) - Math.abs(a.delta) ||
        compareText(a.name, b.name)
      );
    });
}

/** A delta is ranked by its size, what differs before what may be chance: what vanished matters as much as what came. */
function sortValue(row: DiffTopRow, key: Exclude<DiffSortKey, "name">): number {
  if (key === "before") return row.base_norm;
  if (key === "after") return row.norm;
  if (key === "delta") return Math.abs(row.delta) + (row.state === "same" ? 0 : ABOVE_ALL);
  if (row.base_norm <= 0) return row.norm > 0 ? Number.MAX_VALUE : 1;
  return row.norm / row.base_norm;
}
