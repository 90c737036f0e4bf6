/** The table of a label's values. In: the server's rows. Out: parts of their time, and the rows in the wanted order. */
import { compareText } from "../text/names.ts";

export interface RankRow {
  name: string;
  total: number;
  cpu_seconds: number | null;
  user_share?: number | null;
  truncated_share?: number | null;
  unnamed_share?: number | null;
}

/** What is ranked by: a name, or a part of the time. */
export const RANK_KEYS = ["name", "total", "kernel", "cut", "unnamed"] as const;
export type RankKey = (typeof RANK_KEYS)[number];

/** The part of a row's samples that a column is about; null where the server does not know. */
export function rankShare(row: RankRow, key: Exclude<RankKey, "name">): number | null {
  if (key === "total") return 1;
  if (key === "cut") return row.truncated_share ?? null;
  if (key === "unnamed") return row.unnamed_share ?? null;
  return row.user_share === null || row.user_share === undefined ? null : 1 - row.user_share;
}

/** What a column shows, and is sorted by: samples, of all its time or of the part that the column is about. */
export function rankAmount(row: RankRow, key: Exclude<RankKey, "name">): number | null {
  const share = rankShare(row, key);
  return share === null ? null : Math.round(row.total * share);
}

export function sortRanks<Row extends RankRow>(rows: readonly Row[], key: RankKey, descending: boolean): Row[] {
  const sign = descending ? -1 : 1;
  const amount = (row: Row, part: Exclude<RankKey, "name">) => rankAmount(row, part) ?? 0;
  return [...rows].sort((a, b) => {
    const by = key === "name" ? compareText(a.name, b.name) : amount(a, key) - amount(b, key);
    return sign * by || b.total - a.total || compareText(a.name, b.name);
  });
}
