/** Functions, or the values of a label, on both sides of a comparison, as the server judged them. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { DiffTopRow, TopAnswer } from "../../api/types.ts";
import { type Change, kindOf, kindWord, MARK } from "../../logic/colour.ts";
import { countsOf, cpuSecondsOf, judgedText, sumsOfTable } from "../../logic/compare/bothSides.ts";
import { changeText, factor } from "../../logic/compare/changeText.ts";
import { judgedUnit, normText, normUnit } from "../../logic/compare/norm.ts";
import { changeWords, type SideNames, sideText } from "../../logic/compare/sideNames.ts";
import {
  DIFF_SORT_KEYS,
  type DiffSortKey,
  diffRows,
  largestDelta,
  type Only,
  sidePairs,
} from "../../logic/table/diffRows.ts";
import { duration, levelText, plural, shareOf } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { timeHead } from "../../logic/text/unit.ts";
import { rowKey } from "../../logic/tree/frameKey.ts";
import { page } from "../../state/address/page.ts";
import { comparing } from "../../state/answers/compare.ts";
import { tableMatcher } from "../../state/screen/search.ts";
import { pointedFrame, pointedRow } from "../../state/screen/selection.ts";
import { amount, counted, told as pairTold } from "../../state/screen/units.ts";
import { layerName } from "../chart/LayerList.tsx";
import { showValueMenu } from "../chart/ValueButtons.tsx";
import { VALUE_HINT } from "../chart/valueActions.ts";
import { type Column, nameRoom, useSort, VirtualTable } from "../ui/VirtualTable.tsx";

interface Props {
  /** What the rows are: `function`, or a label. */
  by: string;
  answer: TopAnswer<DiffTopRow>;
  rows: readonly DiffTopRow[];
  only: Only;
  onTake: (row: DiffTopRow, event: MouseEvent | KeyboardEvent) => void;
  /** The row that is selected elsewhere; none where it is left out. */
  isChosen?: (row: DiffTopRow) => boolean;
  sides: SideNames;
  choice?: ComponentChildren;
}

const APART: Record<string, string> = { grew: "B more", shrank: "A more", new: "only B", gone: "only A" };
const NOTHING: Record<Only, string> = {
  "": "Nothing to show.",
  significant: "No significant change between A and B.",
  new: "No significant change: nothing is in B alone.",
  gone: "No significant change: nothing is in A alone.",
};

/** Pixels from which on there is room for what both sides divided are. */
const LEAST_FOR_FACTOR = 540;
/** Pixels from which on there is room for all columns. */
const ROOMY = 640;
const DELTA_WIDTH = { beside: "80px", phone: "72px" };
const TOLD_WIDTH = { beside: "94px", phone: "90px" };
const LEVEL_WIDTH = { beside: "66px", alone: "80px", phone: "63px" };

export function JudgedTable({ by, answer, rows, only, onTake, isChosen, sides, choice }: Props) {
  const { normalize = "rate", confidence = 0.95, measure = "total", complete } = answer;
  const isFunction = by === "function";
  // A search is for functions.
  const wanted = isFunction ? tableMatcher.value : null;
  const [sort, setSort] = useSort(DIFF_SORT_KEYS, { key: "delta", descending: true });
  const shown = useMemo(
    () => diffRows(rows, sort.key, sort.descending, only, wanted, measure),
    [rows, sort, only, wanted, measure],
  );
  const chosenRow = isChosen === undefined ? -1 : shown.findIndex(isChosen);
  const most = useMemo(() => largestDelta(rows), [rows]);
  const { inTurn } = sides;
  const wordOf = (change: Change) => (inTurn ? `that are ${change}` : changeWords(sides, change));
  const heads = ([0, 1] as const).map((at) => sideText(sides, at)) as [string, string];
  const saidOnly = { "": "", significant: "that differ", new: wordOf("new"), gone: wordOf("gone") }[only];
  // In a narrow column letters stand for the sides.
  const short = (state: string) => (inTurn ? state : (APART[state] ?? ""));
  const words = (row: DiffTopRow) => changeWords(sides, row.state as Change);
  const known = comparing.value ? pairTold.value.sums : null;
  const sums = useMemo(() => sumsOfTable(answer, known), [answer, known]);
  const told = { normalize, unit: counted.value, choice: page.value.unit, sums };
  const interval = (row: DiffTopRow) => `${changeText(row.low, told)} to ${changeText(row.high, told)}`;
  const level = levelText(confidence);
  const room = nameRoom();
  const pairs = sidePairs(answer.is_time !== false, told.choice);
  const pairOf = (from: number | null, column: (at: 0 | 1, from: number) => Column<DiffTopRow, DiffSortKey>) =>
    from === null ? [] : ([0, 1] as const).map((at) => column(at, from));
  const timeColumn = (at: 0 | 1, from: number): Column<DiffTopRow, DiffSortKey> => ({
    key: at === 0 ? "beforeTime" : "afterTime",
    title: `${counted.value.isWait ? "Waited" : "CPU"} ${"AB"[at]}`,
    hint: `${timeHead(counted.value)} of side ${heads[at]}`,
    number: true,
    width: { beside: "66px", alone: "90px", from },
    cell: (row) => {
      const { before, after } = cpuSecondsOf(row, answer);
      const seconds = at === 0 ? before : after;
      // Where there is no room for what was compared, it is one step away.
      const value = normText(at === 0 ? row.base_norm : row.norm, at, { ...told, choice: "" });
      return seconds === null ? "" : <span title={`${value} ${judgedUnit(told)}`}>{duration(seconds)}</span>;
    },
  });
  const levelColumn = (at: 0 | 1, from: number): Column<DiffTopRow, DiffSortKey> => ({
    key: at === 0 ? "before" : "after",
    title: (inTurn ? ["Before", "After"] : ["A", "B"])[at] as string,
    hint: `Side ${heads[at]}, ${normUnit(told)}`,
    number: true,
    width: { ...LEVEL_WIDTH, from },
    cell: (row) => (
      <span title={amount(countsOf(row, answer)[at])}>{normText(at === 0 ? row.base_norm : row.norm, at, told)}</span>
    ),
  });
  const columns: Column<DiffTopRow, DiffSortKey>[] = [
    {
      key: "name",
      title: isFunction ? "Function" : by,
      hint: isFunction ? "Sort by name" : `Sort by name. ${VALUE_HINT}`,
      number: false,
      width: { beside: "minmax(110px, 1fr)", alone: "minmax(120px, 3fr)", phone: "minmax(90px, 1fr)" },
      cell: (row) => (
        <span
          class="function"
          title={
            isFunction ? `${row.name}\n${kindWord(kindOf(rowKey(row).kind, false))} · ${row.module ?? ""}` : row.name
          }
        >
          <i class={`mark ${row.state}`} title={words(row)}>
            {MARK[row.state as Change]}
          </i>
          <span class="visually-hidden">{words(row)}: </span>
          <bdi>{isFunction ? fitName(row.name, room) : layerName(row.name, 0, by)}</bdi>
          <small>{row.module}</small>
        </span>
      ),
    },
    ...pairOf(pairs.time, timeColumn),
    ...pairOf(pairs.level, levelColumn),
    {
      key: "delta",
      title: "Change",
      hint: `B minus A, judged in ${judgedUnit(told)}; what differs first, then by size in either direction`,
      number: true,
      // What is told in another unit than it was judged in has the unit beside it where the sides are no match.
      width: { ...(told.choice === "" ? DELTA_WIDTH : TOLD_WIDTH), alone: "minmax(94px, 1fr)" },
      cell: (row) => (
        <span class={`amount delta ${row.state}`} title={`${level}: ${interval(row)}`}>
          <i style={{ width: `${shareOf(Math.abs(row.delta), most) * 100}%` }} />
          <b>{changeText(row.delta, told)}</b>
        </span>
      ),
    },
    {
      key: "low",
      title: `${level} CI`,
      hint: `Interval that holds the true change with a confidence of ${level}; sorted by what the change is at least`,
      number: true,
      width: { beside: "132px", alone: "150px", from: ROOMY },
      cell: (row) => <span class={row.state === "same" ? "dim" : ""}>{interval(row)}</span>,
    },
    {
      key: "state",
      title: "State",
      hint: "What the change is called; without a significant change there is none",
      number: false,
      width: { beside: "58px", from: ROOMY },
      cell: (row) => <span class={`state ${row.state}`}>{row.state === "same" ? "" : short(row.state)}</span>,
    },
    {
      key: "factor",
      title: "×",
      hint: "B divided by A",
      number: true,
      width: { beside: "54px", phone: "52px", from: LEAST_FOR_FACTOR },
      cell: (row) => (row.state === "new" || row.state === "gone" ? short(row.state) : factor(row.base_norm, row.norm)),
    },
  ];
  const things = isFunction ? "function" : "value";
  return (
    <div class="tablebox">
      <div class="tablebox-title">
        {choice}
        <b>{plural(shown.length, things)}</b>
        <span class="dim">
          {isFunction && measure === "self" && "by self "}
          {saidOnly}
          {sides.inTurn ? "" : ` ${heads.join(" · ")}`}
          {complete ? "" : " (the largest; the API gives all)"}
        </span>
      </div>
      <p class="judged dim" data-testid="judged">
        {judgedText(answer)}
      </p>
      <VirtualTable
        label={isFunction ? "Functions of both windows" : `Both windows by ${by}`}
        rows={shown}
        keyOf={(row) => (isFunction ? JSON.stringify(rowKey(row)) : row.name)}
        columns={columns}
        sort={sort}
        onSort={setSort}
        onTake={onTake}
        onMenu={isFunction ? undefined : (row, beside, x) => showValueMenu(by, row.name, beside, x)}
        onPoint={(row) => {
          if (isFunction) pointedRow.value = row?.name ?? null;
        }}
        shown={chosenRow}
        rowClass={(row) => `${row.state}${isFunction && row.name === pointedFrame.value ? " pointed" : ""}`}
        empty={NOTHING[only]}
      />
    </div>
  );
}
