/** Which rows of a long table are drawn: those in sight and a few around them. In and out: CSS pixels and indexes. */

export interface Slice {
  first: number;
  behind: number;
}

export function visibleRows(count: number, rowHeight: number, scrollTop: number, height: number, around = 4): Slice {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - around);
  const behind = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + around);
  return { first: Math.min(first, count), behind: Math.max(behind, Math.min(first, count)) };
}

/** Where to scroll so that a row is in sight; unchanged where it already is. */
export function scrollToRow(row: number, rowHeight: number, scrollTop: number, height: number): number {
  const top = row * rowHeight;
  if (top < scrollTop) return top;
  if (top + rowHeight > scrollTop + height) return top + rowHeight - height;
  return scrollTop;
}

/** Which row somebody is at: where it was, and what tells it from others. */
export interface RowPlace {
  at: number;
  key: string;
}

/**
 * Where that row is now, whatever order others have now; where it is gone, what came to its place. Rows of one key are
 * told by their place.
 */
export function placeOfRow<Row>(rows: readonly Row[], keyOf: (row: Row) => string, place: RowPlace | null): number {
  if (place === null) return 0;
  const there = rows[place.at];
  if (there !== undefined && keyOf(there) === place.key) return place.at;
  const moved = rows.findIndex((row) => keyOf(row) === place.key);
  return moved >= 0 ? moved : Math.max(0, Math.min(place.at, rows.length - 1));
}
