/**
 * A table of any length of which only the rows in sight exist. Rows are links to something: click or Enter takes one.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { columnsFor, type Layout, type Width } from "../../logic/table/columns.ts";
import { scrollToRow, visibleRows } from "../../logic/table/rows.ts";
import { type Sort, sortOf, sortText } from "../../logic/table/sort.ts";
import { navigate, page } from "../../state/address/page.ts";
import { useSize } from "./hooks.ts";

export interface Column<Row, Key extends string> {
  key: Key;
  title: string;
  hint: string;
  number: boolean;
  width: Width;
  cell: (row: Row) => ComponentChildren;
}

interface Props<Row, Key extends string> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row, Key>[];
  sort: Sort<Key>;
  onSort: (sort: Sort<Key>) => void;
  /** The event tells which keys were held. */
  onTake: (row: Row, event: MouseEvent | KeyboardEvent) => void;
  /** The pointer is on a row, or on none. */
  onPoint?: (row: Row | null) => void;
  /** A row that another view has chosen: it is brought into sight. */
  shown?: number;
  rowClass?: (row: Row) => string;
  empty: string;
}

/** The sort of the table on the screen, which the address holds. */
export function useSort<Key extends string>(
  keys: readonly Key[],
  usual: Sort<Key>,
): [Sort<Key>, (sort: Sort<Key>) => void] {
  const { sort: text } = page.value;
  const sort = useMemo(() => sortOf(text, keys, usual), [text]);
  return [sort, (wanted) => navigate({ sort: sortText(wanted) === sortText(usual) ? "" : sortText(wanted) })];
}

const TABLE_ROW = 24;

/** Characters of a name; longer ones lose first what says least. */
const NAME_ROOM: Record<Layout, number> = { phone: 18, beside: 34, alone: 130 };
/** As in `style/screens.css`. */
const PHONE = "(max-width: 560px)";

function layoutNow(): Layout {
  if (matchMedia(PHONE).matches) return "phone";
  return page.value.pane === "table" ? "alone" : "beside";
}

export function nameRoom(layout: Layout = layoutNow()): number {
  return NAME_ROOM[layout];
}

export function VirtualTable<Row, Key extends string>(props: Props<Row, Key>) {
  const { label, rows, columns, sort, onSort, onTake, onPoint, shown = -1, rowClass, empty } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const size = useSize(box);
  const [scroll, setScroll] = useState(0);
  const [active, setActive] = useState(0);
  const head = TABLE_ROW;
  const { shown: drawn, tracks } = columnsFor(columns, layoutNow(), size.width);
  const { first, behind } = visibleRows(rows.length, TABLE_ROW, scroll, Math.max(0, size.height - head));

  useEffect(() => {
    if (active >= rows.length) setActive(0);
  }, [rows.length, active]);

  useEffect(() => {
    // Before the first layout nothing is in sight.
    if (shown < 0 || box.current === null || size.height === 0) return;
    setActive(shown);
    box.current.scrollTop = scrollToRow(shown, TABLE_ROW, box.current.scrollTop, size.height - head);
  }, [shown, rows, size.height]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return;
    const page = Math.max(1, Math.floor((size.height - head) / TABLE_ROW) - 1);
    const by: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -1e9,
      End: 1e9,
    };
    const row = rows[active];
    if (event.key === "Enter" && row !== undefined) onTake(row, event);
    else if (by[event.key] !== undefined) {
      const next = Math.min(Math.max(active + (by[event.key] as number), 0), rows.length - 1);
      setActive(next);
      if (box.current) box.current.scrollTop = scrollToRow(next, TABLE_ROW, box.current.scrollTop, size.height - head);
    } else return;
    event.preventDefault();
  };

  return (
    <div
      class="vtable"
      ref={box}
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={rows.length > 0 ? `${id}-${active}` : undefined}
      tabIndex={0}
      style={{ "--columns": tracks }}
      onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div class="vtable-head" role="row" aria-rowindex={1}>
        {drawn.map((column) => {
          const sorted = column.key === sort.key;
          return (
            <div
              key={column.key}
              role="columnheader"
              class={column.number ? "number" : ""}
              aria-sort={sorted ? (sort.descending ? "descending" : "ascending") : "none"}
            >
              <button
                type="button"
                title={column.hint}
                onClick={() => onSort({ key: column.key, descending: sorted ? !sort.descending : column.number })}
              >
                {column.title}
                <span aria-hidden="true">{sorted ? (sort.descending ? " ▾" : " ▴") : ""}</span>
              </button>
            </div>
          );
        })}
      </div>
      <div class="vtable-body" role="rowgroup" style={{ height: `${rows.length * TABLE_ROW}px` }}>
        {rows.slice(first, behind).map((row, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the table itself takes the keys for its active row.
          <div
            key={first + i}
            id={`${id}-${first + i}`}
            role="row"
            aria-selected={first + i === active}
            aria-rowindex={first + i + 2}
            class={`vtable-row ${rowClass?.(row) ?? ""}${first + i === active ? " active" : ""}`}
            style={{ transform: `translateY(${(first + i) * TABLE_ROW}px)` }}
            onPointerEnter={() => onPoint?.(row)}
            onPointerLeave={() => onPoint?.(null)}
            onClick={(event) => {
              setActive(first + i);
              onTake(row, event);
            }}
          >
            {drawn.map((column) => (
              <div key={column.key} role="gridcell" class={column.number ? "number" : ""}>
                {column.cell(row)}
              </div>
            ))}
          </div>
        ))}
      </div>
      {rows.length === 0 && <div class="vtable-empty">{empty}</div>}
    </div>
  );
}
