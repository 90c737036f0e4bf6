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
