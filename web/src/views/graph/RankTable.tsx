/** The values of a label by CPU time, with what the kernel spent of it: which process, container or pod it was. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { TopAnswer, TopRow } from "../../api/types.ts";
import { RANK_KEYS, type RankKey, rankAmount, rankShare, sortRanks } from "../../logic/table/rankRows.ts";
import { duration, percent, plural, shareOf } from "../../logic/text/format.ts";
import { amountHead, amountText, rateText, timeHead } from "../../logic/text/unit.ts";
import { amount, besideFigure, counted, figure, figureTitle, unitChoice } from "../../state/screen/units.ts";
import { layerName } from "../chart/LayerList.tsx";
import { showValueMenu } from "../chart/ValueButtons.tsx";
import { actionOf, actOnValue, VALUE_HINT } from "../chart/valueActions.ts";
import { type Column, useSort, VirtualTable } from "../ui/VirtualTable.tsx";

interface Props {
  answer: TopAnswer<TopRow> | null;
  choice: ComponentChildren;
}

/** Pixels from which on there is room for all columns. */
const ROOMY = 600;

/** A part of a row's time: how much it is, by which the column is sorted, and beside it the share of the row. */
function Part({ row, part }: { row: TopRow; part: "kernel" | "cut" | "unnamed" }) {
  const [samples, share] = [rankAmount(row, part), rankShare(row, part)];
  if (samples === null || share === null) return null;
  return (
    <span class="amount" title={`${amount(samples)}, ${percent(share)} of its own`}>
      <em>{percent(share)}</em>
      <b>{figure(samples)}</b>
    </span>
  );
}

export function RankTable({ answer, choice }: Props) {
  const [sort, setSort] = useSort(RANK_KEYS, { key: "total", descending: true });
  const rows = useMemo(() => sortRanks(answer?.rows ?? [], sort.key, sort.descending), [answer, sort]);
  const whole = answer?.samples ?? 0;
  const unit = counted.value;
  const columns: Column<TopRow, RankKey>[] = [
    {
      key: "name",
      title: answer?.by ?? "",
      hint: `Sort by name. ${VALUE_HINT}`,
      number: false,
      width: { beside: "minmax(110px, 1fr)", alone: "minmax(110px, 2fr)" },
      cell: (row) => <span title={row.name}>{layerName(row.name, 0, answer?.by)}</span>,
    },
    {
      key: "kernel",
      title: "Kernel",
      hint: "What of it was spent in the kernel, with its share",
      number: true,
      width: { beside: "128px", phone: "72px" },
      cell: (row) => <Part row={row} part="kernel" />,
    },
    {
      key: "cut",
      title: "Truncated",
      hint: "What of it has truncated stacks, which lack their root or a part before it, with its share",
      number: true,
      width: { beside: "128px", from: ROOMY },
      cell: (row) => <Part row={row} part="cut" />,
    },
    {
      key: "unnamed",
      title: "Unsymbolized",
      hint: "What of it has stacks with an unsymbolized frame, with its share",
      number: true,
      width: { beside: "128px", from: ROOMY },
      cell: (row) => <Part row={row} part="unnamed" />,
    },
    {
      key: "total",
      title: figureTitle(),
      hint: `${unit.isTime ? timeHead(unit) : amountHead(unit)} in this window and its share`,
      number: true,
      width: { beside: "140px", alone: "minmax(150px, 2fr)" },
      cell: (row) => {
        const share = shareOf(row.total, whole);
        return (
          <span
            class="amount"
            title={`${rateText(row.cores ?? row.rate ?? 0, unit)}, ${amountText(row.total, unit)}${row.cpu_seconds === null ? "" : `, ${duration(row.cpu_seconds)}`}`}
          >
            <i style={{ width: `${share * 100}%` }} />
            <em>{unitChoice.value === "share" ? besideFigure(row.total) : figure(row.total)}</em>
            <b>{percent(share)}</b>
          </span>
        );
      },
    },
  ];
  return (
    <div class="tablebox">
      <div class="tablebox-title">
        {choice}
        <b>{answer === null ? "" : plural(rows.length, "value")}</b>
      </div>
      <VirtualTable
        label={`Ranked by ${answer?.by ?? "label"}`}
        rows={rows}
        keyOf={({ name }) => name}
        columns={columns}
        sort={sort}
        onSort={setSort}
        onTake={(row, event) => answer !== null && actOnValue(answer.by, row.name, actionOf(event))}
        onMenu={(row, beside, x) => answer !== null && showValueMenu(answer.by, row.name, beside, x)}
        empty={answer === null ? "Loading …" : "No samples in this window."}
      />
    </div>
  );
}
