/** The functions of both sides of a comparison, as the server computed them. */
import { useMemo } from "preact/hooks";
import type { DiffTopRow, Normalize } from "../../api/types.ts";
import { type Change, MARK } from "../../logic/colour.ts";
import { changeText, normText, normUnit } from "../../logic/compare/norm.ts";
import { changeWords, sideText } from "../../logic/compare/sideNames.ts";
import { DIFF_SORT_KEYS, type DiffSortKey, diffRows, largestDelta, type Only } from "../../logic/table/diffRows.ts";
import { factor, levelText, plural, shareOf } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { largestOf, rowOf } from "../../logic/tree/functions.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { tableMatcher } from "../../state/screen/search.ts";
import { pointedFrame, pointedRow, select, selected } from "../../state/screen/selection.ts";
import { tree } from "../../state/screen/tree.ts";
import { amount, counted } from "../../state/screen/units.ts";
import { type Column, nameRoom, useSort, VirtualTable } from "../ui/VirtualTable.tsx";

interface Props {
  rows: readonly DiffTopRow[];
  normalize: Normalize;
  only: Only;
  confidence: number;
  complete: boolean;
  onFind: (name: string) => void;
}

const keyOf = ({ name, module = "", kind = "" }: DiffTopRow) => ({ name, module, kind });

const APART: Record<string, string> = { grew: "B more", shrank: "A more", new: "only B", gone: "only A" };
const NOTHING: Record<Only, string> = {
  "": "No function to show.",
  significant: "Nothing differs beyond chance between A and B.",
  new: "Nothing is in B alone beyond chance.",
  gone: "Nothing is in A alone beyond chance.",
};

/** Pixels from which on there is room for all columns. */
const ROOMY = 640;
const LEVEL_WIDTH = { beside: "66px", alone: "80px", phone: "63px" };

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
  const most = useMemo(() => largestDelta(rows), [rows]);
  const { inTurn } = sideNames.value;
  const wordOf = (change: Change) => (inTurn ? `that are ${change}` : changeWords(sideNames.value, change));
  const heads = ([0, 1] as const).map((at) => sideText(sideNames.value, at)) as [string, string];
  const saidOnly = { "": "", significant: "that differ", new: wordOf("new"), gone: wordOf("gone") }[only];
  // In a narrow column letters stand for the sides.
  const short = (state: string) => (inTurn ? state : (APART[state] ?? ""));
  const words = (row: DiffTopRow) => changeWords(sideNames.value, row.state as Change);
  const value = (v: number) => normText(v, normalize, counted.value);
  const interval = (row: DiffTopRow) =>
    `${changeText(row.low, normalize, counted.value)} to ${changeText(row.high, normalize, counted.value)}`;
  const level = levelText(confidence);
  const room = nameRoom();
  const columns: Column<DiffTopRow, DiffSortKey>[] = [
    {
      key: "name",
      title: "Function",
      hint: "Sort by name",
      number: false,
      width: { beside: "minmax(120px, 1fr)", alone: "minmax(120px, 3fr)", phone: "minmax(90px, 1fr)" },
      cell: (row) => (
        <span class="function" title={`${row.name}\n${row.kind ?? ""} · ${row.module ?? ""}`}>
          <i class={`mark ${row.state}`} title={words(row)}>
            {MARK[row.state as Change]}
          </i>
          <span class="visually-hidden">{words(row)}: </span>
          <bdi>{fitName(row.name, room)}</bdi>
          <small>{row.module}</small>
        </span>
      ),
    },
    {
      key: "before",
      title: inTurn ? "Before" : "A",
      hint: `Side ${heads[0]}, ${normUnit(normalize, counted.value)}`,
      number: true,
      width: LEVEL_WIDTH,
      cell: (row) => <span title={amount(row.base_total)}>{value(row.base_norm)}</span>,
    },
    {
      key: "after",
      title: inTurn ? "After" : "B",
      hint: `Side ${heads[1]}, ${normUnit(normalize, counted.value)}`,
      number: true,
      width: LEVEL_WIDTH,
      cell: (row) => <span title={amount(row.total)}>{value(row.norm)}</span>,
    },
    {
      key: "delta",
      title: "Change",
      hint: "B minus A; what differs first, then by size in either direction",
      number: true,
      width: { beside: "84px", alone: "minmax(84px, 1fr)", phone: "72px" },
      cell: (row) => (
        <span class={`amount delta ${row.state}`} title={`${level}: ${interval(row)}`}>
          <i style={{ width: `${shareOf(Math.abs(row.delta), most) * 100}%` }} />
          <b>{changeText(row.delta, normalize, counted.value)}</b>
        </span>
      ),
    },
    {
      key: "low",
      title: level,
      hint: `Interval that holds the true change with a confidence of ${level}; sorted by what the change is at least`,
      number: true,
      width: { beside: "132px", alone: "150px", from: ROOMY },
      cell: (row) => <span class={row.state === "same" ? "dim" : ""}>{interval(row)}</span>,
    },
    {
      key: "state",
      title: "State",
      hint: "What the change is called; what is not shown to differ has none",
      number: false,
      width: { beside: "58px", from: ROOMY },
      cell: (row) => <span class={`state ${row.state}`}>{row.state === "same" ? "" : short(row.state)}</span>,
    },
    {
      key: "factor",
      title: "×",
      hint: "B divided by A",
      number: true,
      width: { beside: "54px", phone: "52px" },
      cell: (row) => (row.state === "new" || row.state === "gone" ? short(row.state) : factor(row.base_norm, row.norm)),
    },
  ];
  return (
    <div class="tablebox">
      <div class="tablebox-title">
        <b>{plural(shown.length, "function")}</b>
        <span class="dim">
          {saidOnly}
          {inTurn ? "" : ` ${heads.join(" · ")}`}
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
