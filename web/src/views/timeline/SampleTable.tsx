/** The samples and waits in sight as text, in the order of time: what the charts draw, for who can't see them. */
import { useMemo } from "preact/hooks";
import { type Chart, momentText, type Range, sampleFrom } from "../../logic/flame/timeline.ts";
import { fitName } from "../../logic/text/names.ts";
import { frameName } from "../../logic/tree/tree.ts";
import { type Wait, type WaitLane, waitLine } from "../../logic/waits/lanes.ts";
import { type Column, useSort, VirtualTable } from "../ui/VirtualTable.tsx";

interface Props {
  chart: Chart;
  waiting: readonly WaitLane[];
  /** Unix milliseconds at which the chart begins. */
  from: number;
  range: Range;
  onTake: (sample: number) => void;
  onTakeWait: (wait: Wait) => void;
}

type Key = "time" | "who" | "frame";
/** A sample by its place, or a wait. */
type Row = number | Wait;

/** Characters: neighbours begin alike, their ends tell them apart. */
const NAME_ROOM = 22;

export function SampleTable({ chart, waiting, from, range, onTake, onTakeWait }: Props) {
  const { samples, boxOf, tree } = chart;
  const [sort, setSort] = useSort<Key>(["time"], { key: "time", descending: false });
  const waits = useMemo(() => waiting.flatMap((lane) => lane.waits), [waiting]);
  const rows = useMemo(() => {
    const [first, behind] = [sampleFrom(samples, range.from), sampleFrom(samples, range.until)];
    const seen: Row[] = Array.from({ length: behind - first }, (_, i) => first + i);
    const timeOf = (row: Row) => (typeof row === "number" ? (samples.offset_ns[row] as number) : row.end);
    const within = waits.filter(({ end }) => end >= range.from && end < range.until);
    if (within.length > 0) seen.push(...within);
    if (within.length > 0) seen.sort((a, b) => timeOf(a) - timeOf(b));
    return sort.descending ? seen.reverse() : seen;
  }, [samples, waits, range.from, range.until, sort.descending]);
  /** By its moment, as the clock has it: a sample's number is of one answer alone. */
  const keyOf = (row: Row) => {
    const [kind, tid, ns] =
      typeof row === "number" ? ["ran", samples.tid[row], samples.offset_ns[row]] : ["waited", row.tid, row.end];
    return `${kind} ${tid} ${(from + (ns as number) / 1e6).toFixed(3)}`;
  };
  const columns: Column<Row, Key>[] = [
    {
      key: "time",
      title: "Time",
      hint: "When the sample was taken, or the wait ended",
      number: false,
      width: { beside: "104px" },
      cell: (row) => momentText(from, typeof row === "number" ? (samples.offset_ns[row] as number) : row.end, 1e9),
    },
    {
      key: "who",
      title: "Thread",
      hint: "The thread that ran or waited, and on which CPU; in the order of time",
      number: false,
      width: { beside: "minmax(110px, 1fr)" },
      cell: (row) => {
        const of =
          typeof row === "number"
            ? {
                tid: samples.tid[row] ?? "?",
                service: samples.service[row],
                thread: samples.thread[row],
                cpu: samples.cpu[row] ?? "?",
              }
            : row;
        return (
          <span title={`thread ${of.tid} of ${of.service}`}>
            {of.thread} <small class="dim">CPU {of.cpu}</small>
          </span>
        );
      },
    },
    {
      key: "frame",
      title: waits.length > 0 ? "Leaf frame, or wait" : "Leaf frame",
      hint: "What it was in, or waited for; in the order of time",
      number: false,
      width: { beside: "minmax(90px, 1.2fr)" },
      cell: (row) => {
        if (typeof row !== "number") return <i title={waitLine(row)}>{waitLine(row)}</i>;
        const name = frameName(tree, boxOf[row] as number);
        return <span title={name}>{fitName(name, NAME_ROOM)}</span>;
      },
    },
  ];
  return (
    <div class="tablebox">
      <VirtualTable
        label={waits.length > 0 ? "Samples and waits in the order of time" : "Samples in the order of time"}
        rows={rows}
        keyOf={keyOf}
        columns={columns}
        sort={sort}
        onSort={() => setSort({ key: "time", descending: !sort.descending })}
        onTake={(row) => (typeof row === "number" ? onTake(row) : onTakeWait(row))}
        empty="No samples in sight."
      />
    </div>
  );
}
