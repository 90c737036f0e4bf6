/**
 * Which columns of a table there is room for, and how wide they are. In: what each column needs, CSS pixels of the
 * table. Out: the columns that are shown, and the tracks of a grid that has just them.
 */

/** Where a table stands: on a phone, beside a graph, or alone on the page. */
export type Layout = "phone" | "beside" | "alone";

/** Tracks of a grid, as CSS writes them; what is left out is as beside a graph. */
export interface Width {
  beside: string;
  alone?: string;
  phone?: string;
  /** A table of fewer pixels goes without the column: rather fewer columns than names that are cut. */
  from?: number;
}

export function columnsFor<Column extends { width: Width }>(
  columns: readonly Column[],
  layout: Layout,
  pixels: number,
): { shown: Column[]; tracks: string } {
  const shown = columns.filter(({ width }) => pixels >= (width.from ?? 0));
  return { shown, tracks: shown.map(({ width }) => width[layout] ?? width.beside).join(" ") };
}
