/** The functions of both sides of a comparison, as the server computed them. */
import { useMemo } from "preact/hooks";
import type { DiffTopRow, Normalize } from "../api/index.ts";
import { CHANGE_WORDS, type Change, MARK } from "../logic/colour.ts";
import { DIFF_SORT_KEYS, type DiffSortKey, diffRows, type Only } from "../logic/diffrows.ts";
import { count, factor, levelText, plural } from "../logic/format.ts";
import { largestOf, rowOf } from "../logic/functions.ts";
import { fitName } from "../logic/names.ts";
import { changeText, normText, normUnit } from "../logic/norm.ts";
import { pointedFrame, pointedRow, select, selected, tableMatcher, tree } from "../state/data.ts";
import { page } from "../state/index.ts";
import { type Column, NARROW_NAME, useSort, VirtualTable, WIDE_NAME } from "./VirtualTable.tsx";

interface Props {
  rows: readonly DiffTopRow[];
  normalize: Normalize;
  only: Only;
  confidence: number;
  complete: boolean;
  onFind: (name: string) => void;
}

const keyOf = ({ name, module = "", kind = "" }: DiffTopRow) => ({ name, module, kind });

const ONLY_WORDS: Record<Only, string> = {
  "": "",
  significant: "that differ",
  new: "that are new",
  gone: "that are gone",
};
const NOTHING: Record<Only, string> = {
  "": "No function to show.",
  significant: "Nothing differs beyond chance between these windows.",
  new: "Nothing is new beyond chance in B.",
  gone: "Nothing of A is gone beyond chance in B.",
};

export function DiffTable({ rows, normalize, only, confidence, complete, onFind }: Props) {
  const wanted = tableMatcher.value;
  const [sort, setSort] = useSort(DIFF_SORT_KEYS, { key: "delta", descending: true });
  const shown = useMemo(() => diffRows(rows, sort.key, sort.descending, only, wanted), [rows, sort, only, wanted]);
  const drawn = tree.value.tree;
  const chosen = selected.value;
  const chosenRow = useMemo(
    () => (chosen === null || drawn === null ? -1 : rowOf(shown.map(keyOf), drawn, chosen)),
    [shown, drawn, chosen],
  );
  const most = useMemo(() => rows.reduce((top, row) => Math.max(top, Math.abs(row.delta)), 0), [rows]);
  const value = (v: number) => normText(v, normalize);
  const interval = (row: DiffTopRow) => `${changeText(row.low, normalize)} to ${changeText(row.high, normalize)}`;
  const level = levelText(confidence);
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
          <bdi>{fitName(row.name, room)}</bdi>
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
        <span class={`amount delta ${row.state}`} title={`${level}: ${interval(row)}`}>
          <i style={{ width: `${most > 0 ? (Math.abs(row.delta) / most) * 100 : 0}%` }} />
          <b>{changeText(row.delta, normalize)}</b>
        </span>
      ),
    },
    {
      key: "low",
      title: level,
      hint: `Interval that holds the true change with a confidence of ${level}; sorted by what the change is at least`,
      number: true,
      spare: true,
      cell: (row) => <span class={row.state === "same" ? "dim" : ""}>{interval(row)}</span>,
    },
    {
      key: "state",
      title: "State",
      hint: "What the change is called; what is not shown to differ has none",
      number: false,
      spare: true,
      cell: (row) => <span class={`state ${row.state}`}>{row.state === "same" ? "" : row.state}</span>,
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
          {ONLY_WORDS[only]}
          {complete ? "" : " (the largest; the API gives all)"}
        </span>
      </div>
      <VirtualTable
        label="Functions of both windows"
        rows={shown}
        columns={columns}
        sort={sort}
        onSort={setSort}
        onTake={(row) => {
          onFind(row.name);
          if (drawn !== null) select(largestOf(drawn, keyOf(row)));
        }}
        onPoint={(row) => {
          pointedRow.value = row?.name ?? null;
        }}
        shown={chosenRow}
        rowClass={(row) => `${row.state}${row.name === pointedFrame.value ? " pointed" : ""}`}
        empty={NOTHING[only]}
      />
    </div>
  );
}
