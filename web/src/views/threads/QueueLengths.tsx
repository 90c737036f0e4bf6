/** How long threads waited for a CPU: median, 99 in 100 and the longest over time, and by a label. */
import { useMemo, useState } from "preact/hooks";
import type { RunQueueAnswer } from "../../api/types.ts";
import { cores, count, duration, percent, plural } from "../../logic/text/format.ts";
import { clock } from "../../logic/time/time.ts";
import {
  hasKinds,
  LINES,
  type LineKey,
  QUEUE_SORT_KEYS,
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
import { chosenRow } from "../../state/waits/row.ts";
import { queueBy, rowQueue, rowUncounted, runQueue } from "../../state/waits/runQueue.ts";
import { layerName } from "../chart/LayerList.tsx";
import { showValueMenu } from "../chart/ValueButtons.tsx";
import { MarkerLane } from "../lazyViews.tsx";
import { Busy, Missing } from "../ui/Notices.tsx";
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
  const label = uncounted(page.value.query);
  if (label !== undefined)
    return (
      <div class="notice slim-notice" role="status" data-testid="queue-uncounted">
        <span>
          How long threads waited for a CPU is counted by program on each CPU, not by {label}: it is not told of this
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
  if (answer === null || answer.batches === 0) return null;
  return (
    <section class="card queue-lengths" aria-label="Waits for a CPU by their length" data-testid="queue-lengths">
      <Busy on={runQueue.loading.value || rowQueue.loading.value} />
      <Selected />
      <Table />
    </section>
  );
}

/** The course of the chosen row, else of all that is selected. */
function Selected() {
  const { by, query } = page.value;
  const [row, isUncounted] = [chosenRow.value, rowUncounted.value !== undefined];
  const isRow = row !== null && !isUncounted;
  const source = isRow ? rowQueue : runQueue;
  const answer = source.data.value;
  if (answer === null) return <Missing error={source.error.value} loading={source.loading.value} kind="chart" />;
  return (
    <div aria-busy={source.stale.value}>
      <Course answer={answer} of={isRow ? `${by} ${layerName(row, 0, by)}` : ""} />
      {isUncounted && (
        <p class="dim queue-note" role="status" data-testid="queue-row-uncounted">
          Waits for a CPU are not counted by {rowUncounted.value}: these are of all that is selected.
        </p>
      )}
      {hasKinds(query) && (
        <p class="dim queue-note" role="status" data-testid="queue-all-kinds">
          All waits for a CPU count here, whatever kinds of waits are left out.
        </p>
      )}
    </div>
  );
}

function Course({ answer, of }: { answer: RunQueueAnswer; of: string }) {
  const [step, setStep] = useState(-1);
  const course = useMemo(() => queueCourse(answer), [answer]);
  const now = (key: LineKey) => (step < 0 ? undefined : course.lines[key][step]);
  const { all } = answer;
  const whole: Record<LineKey, number | null> = {
    longest: all.longest_ns / 1e9,
    p99: all.p99_ns === null ? null : all.p99_ns / 1e9,
    median: all.p50_ns === null ? null : all.p50_ns / 1e9,
  };
  const [from, until] = [course.edges[0] as number, course.edges.at(-1) as number];
  const range = useMemo(() => ({ from, until }), [from, until]);
  const spoken = LINES.map((key) => `${TITLES[key]} ${length(whole[key])}`).join(", ");
  const powers = Array.from({ length: course.most - course.least + 1 }, (_, i) => course.least + i);
  const point = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    setStep(queueStep(course, (event.clientX - box.left) / Math.max(1, box.width)));
  };
  return (
    <>
      <div class="toolbar">
        <h2>
          Waits for a CPU, by their length{of !== "" && ": "}
          {of !== "" && <bdi>{of}</bdi>}
        </h2>
        <span class="spring" />
        <span class="figures">
          {step >= 0 ? (
            <>
              <b>{clock(course.edges[step] as number)}</b> {plural(course.waits[step] as number, "wait")}
            </>
          ) : (
            plural(all.waits, "wait")
          )}
        </span>
      </div>
      <div class="queue-course">
        <ul class="queue-scale" aria-hidden="true">
          {powers.toReversed().map((power) => (
            <li key={power}>{duration(10 ** power)}</li>
          ))}
        </ul>
        <div class="queue-plot">
          <svg
            viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`Waits for a CPU over time: ${spoken}`}
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
          <MarkerLane range={range} />
        </div>
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
  if (rows.some(({ idle }) => idle !== null)) {
    const hint = "Share of the time in which the CPU had nothing to do for anyone, by the ticks of its timer";
    columns.push(figure("idle", "Idle", hint, 420, ({ idle }) => (idle === null ? "–" : percent(idle))));
  }
  const chosen = by === page.value.by ? chosenRow.value : null;
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
          label={`Waits for a CPU by ${by}.${isOther ? "" : " Enter shows the row over time."}`}
          rows={rows}
          keyOf={({ name }) => name}
          columns={columns}
          sort={sort}
          onSort={setSort}
          alone
          shown={chosen === null ? -1 : rows.findIndex(({ name }) => name === chosen)}
          onTake={({ name }) => {
            if (by === page.peek().by) navigate({ row: chosen === name ? "" : `=${name}` });
          }}
          onMenu={(row, beside, x) => showValueMenu(by, row.name, beside, x)}
          empty="Nothing waited for a CPU here."
        />
      </div>
    </>
  );
}
