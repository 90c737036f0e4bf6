/** The functions of both sides of a comparison, as the server computed them. */
import { useMemo, useState } from "preact/hooks";
import type { DiffTopRow, Normalize } from "../api/index.ts";
import { CHANGE_WORDS, type Change, MARK } from "../logic/colour.ts";
import { type DiffSortKey, diffRows } from "../logic/diffrows.ts";
import { count, factor, plural, signed } from "../logic/format.ts";
import { fitName } from "../logic/names.ts";
import type { Matcher } from "../logic/search.ts";
import { page } from "../state/index.ts";
import { normText, normUnit } from "./flame/Tooltip.tsx";
import { type Column, NARROW_NAME, type Sort, VirtualTable, WIDE_NAME } from "./VirtualTable.tsx";

interface Props {
  rows: readonly DiffTopRow[];
  normalize: Normalize;
  matcher: Matcher | null;
  onlySignificant: boolean;
  complete: boolean;
  onFind: (name: string) => void;
}

export function DiffTable({ rows, normalize, matcher, onlySignificant, complete, onFind }: Props) {
  const [sort, setSort] = useState<Sort<DiffSortKey>>({ key: "delta", descending: true });
  const shown = useMemo(
    () => diffRows(rows, sort.key, sort.descending, onlySignificant, matcher),
    [rows, sort, onlySignificant, matcher],
  );
  const most = useMemo(() => rows.reduce((top, row) => Math.max(top, Math.abs(row.delta)), 0), [rows]);
  const value = (v: number) => normText(v, normalize);
  const room = page.value.pane === "table" ? WIDE_NAME : NARROW_NAME;
  const columns: Column<DiffTopRow, DiffSortKey>[] = [
    {
      key: "name",
      title: "Function",
      hint: "Sort by name",
      number: false,
      cell: (row) => (
        <span class="function" title={`${row.name}\n${row.kind ?? ""} · ${row.module ?? ""}`}>
          <i class={`mark ${row.state}`} title={CHANGE_WORDS[row.state as Change]}>
            {MARK[row.state as Change]}
          </i>
          <span class="visually-hidden">{CHANGE_WORDS[row.state as Change]}: </span>
          {fitName(row.name, room)}
          <small>{row.module}</small>
        </span>
      ),
    },
    {
      key: "before",
      title: "Before",
      hint: `Side A, ${normUnit(normalize)}`,
      number: true,
      cell: (row) => <span title={`${count(row.base_total)} samples`}>{value(row.base_norm)}</span>,
    },
    {
      key: "after",
      title: "After",
      hint: `Side B, ${normUnit(normalize)}`,
      number: true,
      cell: (row) => <span title={`${count(row.total)} samples`}>{value(row.norm)}</span>,
    },
    {
      key: "delta",
      title: "Change",
      hint: "After minus before; what differs first, then by size in either direction",
      number: true,
      cell: (row) => (
        <span
          class={`amount delta ${row.state}`}
          title={`95 %: ${signed(value(row.low), row.low)} to ${signed(value(row.high), row.high)}`}
        >
          <i style={{ width: `${most > 0 ? (Math.abs(row.delta) / most) * 100 : 0}%` }} />
          <b>{signed(value(row.delta), row.delta)}</b>
        </span>
      ),
    },
    {
      key: "factor",
      title: "×",
      hint: "After divided by before",
      number: true,
      cell: (row) => (row.state === "new" || row.state === "gone" ? row.state : factor(row.base_norm, row.norm)),
    },
  ];
  return (
    <div class="tablebox diff">
      <div class="tablebox-title">
        <b>{plural(shown.length, "function")}</b>
        <span class="dim">
          {onlySignificant ? "that differ" : ""}
          {complete ? "" : " (the largest; the API gives all)"}
        </span>
      </div>
      <VirtualTable
        label="Functions of both windows"
        rows={shown}
        columns={columns}
        sort={sort}
        onSort={setSort}
        onTake={(row) => onFind(row.name)}
        rowClass={(row) => row.state}
        empty={onlySignificant ? "Nothing differs beyond chance between these windows." : "No function to show."}
      />
    </div>
  );
}
