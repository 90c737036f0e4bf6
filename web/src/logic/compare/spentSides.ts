/**
 * Whose time a frame is on both sides of a comparison. In: the values of a label by time, of each side, as many as the
 * server was asked for. Out: one row a value with what it took on both, the largest first. Nothing here is judged.
 */
import type { TopAnswer, TopRow } from "../../api/types.ts";
import { shareOf } from "../text/format.ts";

export interface SideOfValue {
  /** Cores, or the unit for each second. */
  level: number;
  /** Of the frame's samples on this side. */
  share: number;
  samples: number;
  /** CPU time; null where the type is no time. */
  seconds: number | null;
}

export interface SpentRow {
  name: string;
  /** Null where the side's list ended before the value. */
  before: SideOfValue | null;
  after: SideOfValue | null;
  /** Null where one side is not known. */
  delta: number | null;
}

export interface SpentSides {
  rows: SpentRow[];
  /** Parts of each side that other values have. */
  rest: readonly [before: number, after: number];
}

type Side = Pick<TopAnswer<TopRow>, "rows" | "samples" | "complete">;

export function spentSides(before: Side, after: Side, most: number): SpentSides {
  const of = (side: Side) => {
    const values = new Map(side.rows.map((row) => [row.name, row]));
    return (name: string): SideOfValue | null => {
      const row = values.get(name);
      if (row === undefined) return side.complete ? { level: 0, share: 0, samples: 0, seconds: 0 } : null;
      const { cores, rate, total, cpu_seconds: seconds } = row;
      return { level: cores ?? rate ?? 0, share: shareOf(total, side.samples), samples: total, seconds };
    };
  };
  const [was, is] = [of(before), of(after)];
  const names = new Set([...before.rows, ...after.rows].map(({ name }) => name));
  const rows = [...names].map((name): SpentRow => {
    const [a, b] = [was(name), is(name)];
    return { name, before: a, after: b, delta: a === null || b === null ? null : b.level - a.level };
  });
  const size = ({ before: a, after: b }: SpentRow) => Math.max(a?.level ?? 0, b?.level ?? 0);
  rows.sort((a, b) => size(b) - size(a) || (a.name < b.name ? -1 : 1));
  const shown = rows.slice(0, most);
  const left = (side: "before" | "after", whole: Side) =>
    whole.samples === 0 ? 0 : Math.max(0, 1 - shown.reduce((sum, row) => sum + (row[side]?.share ?? 0), 0));
  return { rows: shown, rest: [left("before", before), left("after", after)] };
}
