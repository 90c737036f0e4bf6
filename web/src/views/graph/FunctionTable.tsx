/** The functions of one window: what the flamegraph shows, as text. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { frameSwatch, kindOf, kindWord, type Theme } from "../../logic/colour.ts";
import {
  FUNCTION_SORT_KEYS,
  type FunctionRow,
  type FunctionSortKey,
  functionsOf,
  sortFunctions,
} from "../../logic/table/functionRows.ts";
import { percent, plural, shareOf } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { largestOf, rowOf } from "../../logic/tree/functions.ts";
import { titleOf } from "../../logic/tree/rows.ts";
import { ROOT, type Tree } from "../../logic/tree/tree.ts";
import { page } from "../../state/address/page.ts";
import { matcher, tableNames } from "../../state/screen/search.ts";
import { pointedFrame, pointedRow, select, selected } from "../../state/screen/selection.ts";
import { upright } from "../../state/screen/tree.ts";
import { amount, besideFigure, counted, figure, figureTitle, unitChoice } from "../../state/screen/units.ts";
import { type Column, nameRoom, useSort, VirtualTable } from "../ui/VirtualTable.tsx";

interface Props {
  tree: Tree;
  focus: number;
  theme: Theme;
  /** Chooses what is ranked. */
  choice: ComponentChildren;
  onFind: (name: string) => void;
}

/** Of an amount and its share over a bar: times are longer than numbers. */
const AMOUNT_WIDTH = { beside: "126px", alone: "minmax(126px, 1fr)", phone: "84px" };
const TIME_WIDTH = { beside: "138px", alone: "minmax(138px, 1fr)", phone: "84px" };

export function FunctionTable({ tree: shown, focus: zoomed, theme, choice, onFind }: Props) {
  const colourBy = page.value.colour || "module";
  // A function's own samples are at the leaves: what was turned round is counted as it was taken.
  const isUpright = shown.shape === "upright";
  const tree = isUpright ? shown : (upright.value ?? shown);
  const focus = isUpright ? zoomed : ROOT;
  const [sort, setSort] = useSort(FUNCTION_SORT_KEYS, { key: "self", descending: true });
  const all = useMemo(() => functionsOf(tree, focus), [tree, focus]);
  // Sorted once, and filtered with each letter of a search: sorting is what takes long.
  const sorted = useMemo(() => sortFunctions(all, sort.key, sort.descending), [all, sort]);
  // Another letter of a search that changes the verdict on no name leaves the table as it is.
  const matched = tableNames.value;
  const rows = useMemo(() => {
    const wanted = matcher.peek();
    if (matched === null || wanted === null) return sorted;
    // Names are looked at once a letter, by the graph; another tree numbers them in another way.
    if (matched.tree.strings === tree.strings) return sorted.filter((row) => matched.names[row.nameId] === 1);
    return sorted.filter((row) => wanted(row.name));
  }, [sorted, matched, tree]);
  const chosen = selected.value;
  const chosenRow = useMemo(() => (chosen === null ? -1 : rowOf(rows, shown, chosen)), [rows, shown, chosen]);
  const whole = tree.total[focus] as number;
  const room = nameRoom();
  const width = counted.value.name === "nanoseconds" ? TIME_WIDTH : AMOUNT_WIDTH;
  // A key without a column does not compile.
  const byKey: Record<FunctionSortKey, Omit<Column<FunctionRow, FunctionSortKey>, "key">> = {
    name: {
      title: "Function",
      hint: "Sort by name",
      number: false,
      width: { beside: "minmax(120px, 1fr)", alone: "minmax(120px, 3fr)" },
      cell: (row) => (
        <span
          class="function"
          title={`${row.name}\n${kindWord(kindOf(row.kind, false))}${row.module === "" ? "" : ` · ${row.module}`}`}
        >
          <i class="swatch" style={{ background: frameSwatch(colourBy, kindOf(row.kind, false), row.module, theme) }} />
          <bdi>{fitName(row.name, room)}</bdi>
          <small>{row.module}</small>
        </span>
      ),
    },
    self: {
      title: "Self",
      hint: "Samples in the function itself",
      number: true,
      width,
      cell: (row) => <Amount samples={row.self} share={shareOf(row.self, whole)} />,
    },
    total: {
      title: "Total",
      hint: "Samples in the function and all that it calls; a recursion counts once",
      number: true,
      width,
      cell: (row) => <Amount samples={row.total} share={shareOf(row.total, whole)} />,
    },
  };
  const columns = FUNCTION_SORT_KEYS.map((key) => ({ key, ...byKey[key] }));
  return (
    <div class="tablebox">
      <div class="tablebox-title">
        {choice}
        <b>{plural(rows.length, "function")}</b>
        <span class="dim">
          {focus === ROOT ? "" : `within ${titleOf(tree, focus)}`}
          {matched === null ? "" : " that match"} {figureTitle()}
        </span>
      </div>
      <VirtualTable
        label="Functions"
        rows={rows}
        keyOf={({ name, module, kind }) => `${kind} ${module} ${name}`}
        columns={columns}
        sort={sort}
        onSort={setSort}
        onTake={(row) => {
          onFind(row.name);
          // What is taken in a table leaves it in sight.
          select(largestOf(shown, row), { tab: "functions" });
        }}
        onPoint={(row) => {
          pointedRow.value = row?.name ?? null;
        }}
        shown={chosenRow}
        rowClass={(row) => (row.name === pointedFrame.value ? "pointed" : "")}
        empty={matched === null ? "No samples in this window." : "No function matches the search."}
      />
    </div>
  );
}

function Amount({ samples, share }: { samples: number; share: number }) {
  return (
    <span class="amount" title={`${amount(samples)}, ${percent(share)}`}>
      <i style={{ width: `${Math.min(100, share * 100)}%` }} />
      <em>{unitChoice.value === "share" ? besideFigure(samples) : figure(samples)}</em>
      <b>{percent(share)}</b>
    </span>
  );
}
