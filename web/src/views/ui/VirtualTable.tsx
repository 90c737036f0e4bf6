/**
 * A table of any length of which only the rows in sight exist. Rows are links to something: click or Enter takes one.
 */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { columnsFor, type Layout, type Width } from "../../logic/table/columns.ts";
import { placeOfRow, type RowPlace, scrollToRow, visibleRows } from "../../logic/table/rows.ts";
import { type Sort, sortOf, sortText } from "../../logic/table/sort.ts";
import { navigate, page } from "../../state/address/page.ts";
import { endsLongPress, longPress, PHONE, useKeptFocus, useSize } from "./hooks.ts";

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
  /** What tells a row from all others, in whatever order they are: hands stay at theirs where a newer answer comes. */
  keyOf: (row: Row) => string;
  columns: readonly Column<Row, Key>[];
  sort: Sort<Key>;
  onSort: (sort: Sort<Key>) => void;
  /** The event tells which keys were held. */
  onTake: (row: Row, event: MouseEvent | KeyboardEvent) => void;
  /** A menu of a row is wanted: by the right button, a long press, or by Shift F10 for the active row. */
  onMenu?: ((row: Row, beside: HTMLElement, x: number) => void) | undefined;
  /** The pointer is on a row, or on none. */
  onPoint?: (row: Row | null) => void;
  /** A row that another view has chosen: it is marked, and brought into sight when the person asks for it. */
  shown?: number;
  rowClass?: (row: Row) => string;
  /** The table is all of the view. */
  alone?: boolean;
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
function layoutNow(alone = page.value.pane === "table"): Layout {
  if (matchMedia(PHONE).matches) return "phone";
  return alone ? "alone" : "beside";
}

export function nameRoom(layout: Layout = layoutNow()): number {
  return NAME_ROOM[layout];
}

export function VirtualTable<Row, Key extends string>(props: Props<Row, Key>) {
  const { label, rows, keyOf, columns, sort, onSort, onTake, onMenu, onPoint } = props;
  const { shown = -1, rowClass, alone, empty } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const size = useSize(box);
  const [scroll, setScroll] = useState(0);
  const [place, setPlace] = useState<RowPlace | null>(null);
  const active = useMemo(() => {
    const at = placeOfRow(rows, keyOf, place);
    const row = rows[at];
    // From there it goes on: what is gone does not come back under a hand.
    if (place !== null && row !== undefined) Object.assign(place, { at, key: keyOf(row) });
    return at;
  }, [rows, place]);
  const setActive = (at: number) => {
    const row = rows[at];
    setPlace(row === undefined ? null : { at, key: keyOf(row) });
  };
  useKeptFocus();
  const head = TABLE_ROW;
  const { shown: drawn, tracks } = columnsFor(columns, layoutNow(alone), size.width);
  const { first, behind } = visibleRows(rows.length, TABLE_ROW, scroll, Math.max(0, size.height - head));

  // Who goes through the rows by keys keeps theirs in sight, wherever a newer answer put it.
  const was = useRef(active);
  useLayoutEffect(() => {
    const [element, before] = [box.current, was.current];
    was.current = active;
    if (element === null || before === active || document.activeElement !== element) return;
    const top = before * TABLE_ROW - element.scrollTop;
    if (top < 0 || top + TABLE_ROW > size.height - head) return;
    element.scrollTop = scrollToRow(active, TABLE_ROW, element.scrollTop, size.height - head);
  }, [active]);

  const toShown = () => {
    setActive(shown);
    if (box.current === null) return;
    box.current.scrollTop = scrollToRow(shown, TABLE_ROW, box.current.scrollTop, size.height - head);
    box.current.focus();
  };
  const rowAt = (event: MouseEvent) => (event.target as HTMLElement).closest<HTMLElement>("[data-row]");
  /** What shows the menu of a row; of keys, which point at none, that of the active row. */
  const menuOf = (pointed: HTMLElement | null, x: number) => {
    const row = rows[pointed === null ? active : Number(pointed.dataset.row)];
    const beside = pointed ?? document.getElementById(`${id}-${active}`);
    if (onMenu === undefined || row === undefined || beside === null) return null;
    return () => onMenu(row, beside, pointed === null ? beside.getBoundingClientRect().left : x);
  };
  const onContextMenu = (event: MouseEvent) => {
    const show = menuOf(rowAt(event), event.clientX);
    if (show === null) return;
    event.preventDefault();
    show();
  };
  const press = longPress((event) => {
    const pointed = rowAt(event);
    return pointed && menuOf(pointed, event.clientX);
  });
  /** Of rows of one key, which there should not be, the first has it: elements must be told apart. */
  const keys = new Set<string>();
  const keyAt = (at: number) => {
    const key = keyOf(rows[at] as Row);
    const own = keys.has(key) ? `${key} ${at}` : key;
    keys.add(own);
    return own;
  };
  const top = shown * TABLE_ROW;
  const isOut = shown >= 0 && size.height > 0 && (top < scroll || top + TABLE_ROW > scroll + size.height - head);

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
    <div class="vtable-box">
      <div
        class={`vtable${onMenu === undefined ? "" : " has-menus"}`}
        ref={box}
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={rows.length > 0 ? `${id}-${active}` : undefined}
        tabIndex={0}
        style={{ "--columns": tracks }}
        onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
        onContextMenu={onContextMenu}
        {...press}
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
              key={keyAt(first + i)}
              id={`${id}-${first + i}`}
              role="row"
              data-row={first + i}
              aria-selected={first + i === (shown < 0 ? active : shown)}
              aria-rowindex={first + i + 2}
              class={`vtable-row ${rowClass?.(row) ?? ""}${first + i === active ? " active" : ""}${first + i === shown ? " chosen" : ""}`}
              style={{ transform: `translateY(${(first + i) * TABLE_ROW}px)` }}
              onPointerEnter={() => onPoint?.(row)}
              onPointerLeave={() => onPoint?.(null)}
              onClick={(event) => {
                if (endsLongPress(event)) return;
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
      {isOut && (
        <button type="button" class="button to-chosen" data-testid="to-chosen" onClick={toShown}>
          {top < scroll ? "↑" : "↓"} to the selected row
        </button>
      )}
    </div>
  );
}
