/** How long threads waited for a CPU: median, 99 in 100 and the longest over time, and by a label. */
import { useMemo, useState } from "preact/hooks";
import { cores, count, duration, plural } from "../../logic/text/format.ts";
import { clock } from "../../logic/time/time.ts";
import {
  LINES,
  type LineKey,
  QUEUE_SORT_KEYS,
  type QueueCourse,
  type QueueRow,
  type QueueSortKey,
  queueCourse,
  queuePath,
  queueRow,
  queueStep,
  sortedQueueRows,
  uncounted,
} from "../../logic/waits/queueLengths.ts";
import { navigate, page } from "../../state/address/page.ts";
import { queueBy, runQueue } from "../../state/waits/runQueue.ts";
import { showValueMenu } from "../chart/ValueButtons.tsx";
import { Busy } from "../ui/Notices.tsx";
import { type Column, useSort, VirtualTable } from "../ui/VirtualTable.tsx";
import { nameColumn } from "./nameColumn.tsx";

const TITLES: Record<LineKey, string> = { longest: "Longest", p99: "99 %", median: "Median" };
/** Units of the drawing, which is stretched to the room that there is. */
const WIDTH = 1000;
const HEIGHT = 120;

const length = (seconds: number | null | undefined) =>
  seconds === null || seconds === undefined ? "–" : duration(seconds);

export function QueueLengths() {
  const answer = runQueue.data.value;
  const error = runQueue.error.value;
  const course = useMemo(() => (answer === null ? null : queueCourse(answer)), [answer]);
  const label = uncounted(page.value.query);
  if (label !== undefined)
    return (
      <div class="notice slim-notice" role="status" data-testid="queue-uncounted">
        <span>
          How long threads waited for a CPU is counted by program and by CPU, not by {label}: it is not told of this
          selection.
        </span>
      </div>
    );
  if (error !== null)
    return (
      <div class="notice slim-notice" role="status" data-testid="queue-error">
        <span>How long threads waited for a CPU is not told: {error.message}.</span>
      </div>
    );
  // Where nobody counted, the view says so above.
  if (answer === null || course === null || answer.batches === 0) return null;
  return (
    <section class="card queue-lengths" aria-label="Waits for a CPU by their length" data-testid="queue-lengths">
      <Busy on={runQueue.loading.value} />
      <Course course={course} />
      <Table />
    </section>
  );
}

function Course({ course }: { course: QueueCourse }) {
  const [step, setStep] = useState(-1);
  const answer = runQueue.data.value;
  const now = (key: LineKey) => (step < 0 ? undefined : course.lines[key][step]);
  const all = answer?.all;
  const whole: Record<LineKey, number | null | undefined> = {
    longest: all && all.longest_ns / 1e9,
    p99: all?.p99_ns === null ? null : all && all.p99_ns / 1e9,
    median: all?.p50_ns === null ? null : all && all.p50_ns / 1e9,
  };
  const powers = Array.from({ length: course.most - course.least + 1 }, (_, i) => course.least + i);
  const point = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    setStep(queueStep(course, (event.clientX - box.left) / Math.max(1, box.width)));
  };
  return (
    <>
      <div class="toolbar">
        <h2>Waits for a CPU, by their length</h2>
        <span class="spring" />
        <span class="figures">
          {step >= 0 ? (
            <>
              <b>{clock(course.edges[step] as number)}</b> {plural(course.waits[step] as number, "wait")}
            </>
          ) : (
            plural(all?.waits ?? 0, "wait")
          )}
        </span>
      </div>
      <div class="queue-course">
        <ul class="queue-scale" aria-hidden="true">
          {powers.toReversed().map((power) => (
            <li key={power}>{duration(10 ** power)}</li>
          ))}
        </ul>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Waits for a CPU over time: ${LINES.map((key) => `${TITLES[key]} ${length(whole[key])}`).join(", ")}`}
          onPointerMove={point}
          onPointerLeave={() => setStep(-1)}
        >
          {powers.map((power) => {
            const y = (HEIGHT * (course.most - power)) / (course.most - course.least);
            return <path key={power} class="queue-grid" d={`M0 ${y}H${WIDTH}`} />;
          })}
          {LINES.map((key) => (
            <path key={key} class={`queue-line queue-${key}`} d={queuePath(course, key, WIDTH, HEIGHT)} />
          ))}
        </svg>
        <ul class="layers queue-legend" aria-label="Lines">
          {LINES.map((key) => (
            <li key={key}>
              <i class={`swatch queue-${key}`} />
              <span class="layer-name">{TITLES[key]}</span>
              <span class="layer-cores">{length(step < 0 ? whole[key] : now(key))}</span>
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}

const USUAL = { key: "threads", descending: true } as const;

function Table() {
  const answer = runQueue.data.value;
  const by = queueBy.value;
  const [sort, setSort] = useSort<QueueSortKey>(QUEUE_SORT_KEYS, USUAL);
  const rows = useMemo(() => {
    const windowMs = answer === null ? 0 : answer.until - answer.from;
    return sortedQueueRows(answer?.lines.map((line) => queueRow(line, windowMs)) ?? [], sort);
  }, [answer, sort]);
  if (answer === null) return null;
  const figure = (
    key: Exclude<QueueSortKey, "name">,
    title: string,
    hint: string,
    from: number,
    cell: (row: QueueRow) => string,
  ): Column<QueueRow, QueueSortKey> => ({
    key,
    title,
    hint,
    number: true,
    width: { beside: "84px", phone: "64px", from },
    cell,
  });
  const columns: Column<QueueRow, QueueSortKey>[] = [
    nameColumn(by),
    figure("threads", "Threads", "Threads that waited for a CPU, as a mean over the window", 0, (row) =>
      cores(row.threads),
    ),
    figure("waits", "Waits", "Waits that ended in the window", 520, (row) => count(row.waits)),
    figure("median", "Median", "Half of the waits were no longer", 420, (row) => length(row.median)),
    figure("p99", "99 %", "99 in 100 waits were no longer", 0, (row) => length(row.p99)),
    figure("longest", "Longest", "The longest wait", 0, (row) => length(row.longest)),
  ];
  const isOther = by !== page.value.by;
  return (
    <>
      {(isOther || answer.others > 0) && (
        <p class="dim queue-note" role="status">
          {isOther && `Waits for a CPU are counted by ${by} here. `}
          {answer.others > 0 &&
            `The ${count(rows.length)} with most time of ${plural(rows.length + answer.others, "value")}.`}
        </p>
      )}
      <div class="queue-rows" aria-busy={runQueue.stale.value}>
        <VirtualTable
          label={`Waits for a CPU by ${by}. Enter shows the row over time.`}
          rows={rows}
          columns={columns}
          sort={sort}
          onSort={setSort}
          alone
          onTake={(row) => navigate({ row: by === page.peek().by ? `=${row.name}` : page.peek().row })}
          onMenu={(row, beside, x) => showValueMenu(by, row.name, beside, x)}
          empty="Nothing waited for a CPU here."
        />
      </div>
    </>
  );
}
