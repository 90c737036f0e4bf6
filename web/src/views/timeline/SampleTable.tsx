/** The samples in sight as text, in the order of time: what the flame chart draws, for who can't see it. */
import { useMemo } from "preact/hooks";
import { type Chart, momentText, type Range, sampleFrom } from "../../logic/flame/timeline.ts";
import { fitName } from "../../logic/text/names.ts";
import { frameName } from "../../logic/tree/tree.ts";
import { type Column, useSort, VirtualTable } from "../ui/VirtualTable.tsx";

interface Props {
  chart: Chart;
  /** Unix milliseconds at which the chart begins. */
  from: number;
  range: Range;
  onTake: (sample: number) => void;
}

type Key = "time" | "who" | "frame";

/** Characters: neighbours begin alike, their ends tell them apart. */
const NAME_ROOM = 22;

export function SampleTable({ chart, from, range, onTake }: Props) {
  const { samples, boxOf, tree } = chart;
  const [sort, setSort] = useSort<Key>(["time"], { key: "time", descending: false });
  const rows = useMemo(() => {
    const [first, behind] = [sampleFrom(samples, range.from), sampleFrom(samples, range.until)];
    const seen = Array.from({ length: behind - first }, (_, i) => first + i);
    return sort.descending ? seen.reverse() : seen;
  }, [samples, range.from, range.until, sort.descending]);
  const columns: Column<number, Key>[] = [
    {
      key: "time",
      title: "Time",
      hint: "When the sample was taken",
      number: false,
      width: { beside: "104px" },
      cell: (sample) => momentText(from, samples.offset_ns[sample] as number, 1e9),
    },
    {
      key: "who",
      title: "Thread",
      hint: "The thread that ran, and on which CPU; in the order of time",
      number: false,
      width: { beside: "minmax(110px, 1fr)" },
      cell: (sample) => (
        <span title={`thread ${samples.tid[sample] ?? "?"} of ${samples.service[sample]}`}>
          {samples.thread[sample]} <small class="dim">CPU {samples.cpu[sample] ?? "?"}</small>
        </span>
      ),
    },
    {
      key: "frame",
      title: "Leaf frame",
      hint: "What it was in; in the order of time",
      number: false,
      width: { beside: "minmax(90px, 1.2fr)" },
      cell: (sample) => {
        const name = frameName(tree, boxOf[sample] as number);
        return <span title={name}>{fitName(name, NAME_ROOM)}</span>;
      },
    },
  ];
  return (
    <div class="tablebox">
      <VirtualTable
        label="Samples in the order of time"
        rows={rows}
        columns={columns}
        sort={sort}
        onSort={() => setSort({ key: "time", descending: !sort.descending })}
        onTake={onTake}
        empty="No samples in sight."
      />
    </div>
  );
}
