/** Where threads' time goes: running, waiting for a CPU, and waits by what they are for; by a label, and over time. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { waitsText } from "../../logic/agents/loss.ts";
import { threadsTable } from "../../logic/picture/threadsTable.ts";
import { coveredShare, layerAt, stepAt, topOf } from "../../logic/series/stack.ts";
import { cores, count, duration, percent, plural } from "../../logic/text/format.ts";
import { clock } from "../../logic/time/time.ts";
import { partOf } from "../../logic/waits/parts.ts";
import {
  hasWaits,
  partStack,
  sortedRows,
  type ThreadTime,
  TIME_SORT_KEYS,
  type TimeRow,
  type TimeSortKey,
} from "../../logic/waits/threadTime.ts";
import { isOpen, navigate, page } from "../../state/address/page.ts";
import { threadSums } from "../../state/answers/explore.ts";
import { labels } from "../../state/answers/server.ts";
import { shownTable } from "../../state/moments/shownTable.ts";
import { theme } from "../../state/screen/theme.ts";
import { chosenRow } from "../../state/waits/row.ts";
import { rowTime, startThreadTime, threadTime, told } from "../../state/waits/threadTime.ts";
import { Brush, type Hover } from "../chart/Brush.tsx";
import { layerName } from "../chart/LayerList.tsx";
import { TimeChart } from "../chart/TimeChart.tsx";
import { useZoom } from "../chart/useZoom.ts";
import { showValueMenu } from "../chart/ValueButtons.tsx";
import { actOnValue } from "../chart/valueActions.ts";
import { WaitChips, WindowQuality } from "../lazyViews.tsx";
import { Choice, Segments } from "../ui/Choice.tsx";
import { Busy, EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "../ui/Notices.tsx";
import { type Column, useSort, VirtualTable } from "../ui/VirtualTable.tsx";
import { nameColumn } from "./nameColumn.tsx";
import { QueueLengths } from "./QueueLengths.tsx";

export { startThreadTime as start };

const BY = ["service", "process", "thread"] as const;

export function Threads() {
  const answer = threadTime.data.value;
  const error = threadTime.error.value;
  const shown = told.value;
  if (error?.code === "bad_query") return <UnreadableSelector error={error} onClear={() => navigate({ query: "" })} />;
  if (answer === null || shown === null)
    return <Missing error={error} loading={threadTime.loading.value} kind="chart" />;
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      {isOpen("data") && <WindowQuality sums={threadSums.value} />}
      {shown.seconds === 0 ? <Nothing /> : <Course />}
      {shown.seconds > 0 && !hasWaits(shown) && <NoWaits />}
      <InTurns text={waitsText(answer.exposure)} />
      <WaitChips />
      {shown.seconds > 0 && <Table shown={shown} of={answer.count} isWhole={answer.complete} by={answer.by} />}
      <QueueLengths />
    </>
  );
}

function Nothing() {
  const { query } = page.value;
  return (
    <EmptyNotice title="No thread's time is told in this window.">
      <p>
        Choose another time, or{" "}
        <button type="button" class="button" disabled={query === ""} onClick={() => navigate({ query: "" })}>
          show everything
        </button>
      </p>
    </EmptyNotice>
  );
}

/** Without waits it is what a chart of CPU time shows. */
function NoWaits() {
  return (
    <div class="notice slim-notice" role="status" data-testid="no-waits">
      <span>
        Nothing waits here, as far as agents tell: from Linux 5.18 on they do, unless one is old, or was started with{" "}
        <code>--waits off</code>.
      </span>
    </div>
  );
}

/** Agents observe waits for a part of the time where more would cost too much. */
function InTurns({ text }: { text: string }) {
  if (text === "") return null;
  return (
    <div class="notice slim-notice" role="status" data-testid="waits-in-turns">
      <span>
        Of this window {text}. Where threads switch very often, an agent looks at their waits in turns, so as to take
        little of the machine.
      </span>
    </div>
  );
}

/** Until there is an answer. */
const NO_TIME = { from: 0, until: 1 };

/** All of the selection over time, or the row that was chosen. */
function Course() {
  const row = chosenRow.value;
  const { by } = page.value;
  const source = row === null ? threadTime : rowTime;
  const answer = source.data.value;
  const stack = useMemo(() => (answer === null ? null : partStack(answer)), [answer]);
  const [hover, setHover] = useState<Hover | null>(null);
  const { range, zoom, onWheel } = useZoom(answer ?? NO_TIME, ({ from, until }) =>
    navigate({ from: String(from), until: String(until), live: false }, "wheel"),
  );
  const shade = theme.value;
  const name = row === null ? "all that is selected" : `${by} ${layerName(row, 0, by)}`;
  if (answer === null || stack === null)
    return <Missing error={source.error.value} loading={source.loading.value} kind="chart" />;
  const top = topOf(stack, null, false, "stacked");
  const step = hover === null ? -1 : stepAt(stack.edges, hover.moment);
  const layer = hover === null ? undefined : stack.layers[layerAt(stack, step, hover.height * top)];
  const total = stack.total[step];
  const level = (value: number) => `${cores(value)} threads`;
  const at = (value: number | null | undefined) =>
    value === null || value === undefined ? `${percent(coveredShare(stack, step))} of it was covered` : level(value);
  return (
    <section class="card chart threads-course" aria-label="Threads over time">
      <Busy on={source.loading.value} />
      <div class="toolbar">
        <h2>
          Threads of <bdi>{name}</bdi>
        </h2>
        {row !== null && (
          <>
            <button type="button" class="button" data-testid="narrow-row" onClick={() => actOnValue(by, row, "only")}>
              Narrow to it
            </button>
            <button type="button" class="button" onClick={() => navigate({ row: "" })}>
              All
            </button>
          </>
        )}
        <span class="spring" />
        <span class="figures" aria-busy={source.stale.value}>
          {step >= 0 && (
            <>
              <b>{clock(stack.edges[step] as number)}</b> {at(total)}
            </>
          )}
        </span>
      </div>
      <div class="chart-row" aria-busy={source.stale.value}>
        <TimeChart
          stack={stack}
          beside={null}
          top={top}
          colours={stack.layers.map(({ value }) => partOf(value ?? "").colour[shade])}
          range={range}
          theme={shade}
          showCapacity={false}
          draw="stacked"
          factor={1}
          label="Threads over time, by what they did. Drag to choose a window."
          onWheel={onWheel}
        >
          {(plot) => (
            <Brush
              plot={plot}
              hover={hover}
              onHover={setHover}
              caption={layer === undefined ? "" : partOf(layer.value ?? "").title}
              spoken={at(total)}
              onZoom={zoom}
              onTake={() => {}}
              onPick={(w) => navigate({ from: String(w.from), until: String(w.until), live: false })}
            />
          )}
        </TimeChart>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: on a phone it scrolls, and a keyboard scrolls it too. */}
        <ul class="layers" aria-label="What threads did" data-testid="thread-parts" tabIndex={0}>
          {stack.layers.map(({ value, mean, share, cores: levels, amount }) => {
            const part = partOf(value ?? "");
            const now = step >= 0 ? levels[step] : undefined;
            return (
              <li key={part.key} title={`${part.title}: ${part.hint}; ${duration(amount / 1e9)} of threads' time`}>
                <i class="swatch" style={{ background: part.colour[shade] }} />
                <span class="layer-name">{part.title}</span>
                <span class="layer-cores">{now === undefined ? cores(mean) : now === null ? "–" : cores(now)}</span>
                <span class="layer-share">{percent(share)}</span>
              </li>
            );
          })}
        </ul>
      </div>
    </section>
  );
}

interface TableProps {
  shown: ThreadTime;
  /** How many values there are. */
  of: number;
  isWhole: boolean;
  by: string;
}

const USUAL = { key: "running", descending: true } as const;

function Table({ shown, of, isWhole, by }: TableProps) {
  const [sort, setSort] = useSort<TimeSortKey>(TIME_SORT_KEYS, USUAL);
  const rows = useMemo(() => sortedRows(shown.rows, sort), [shown, sort]);
  const [scale, setScale] = useState<"level" | "share">("level");
  const most = useMemo(() => Math.max(...shown.rows.map(({ level }) => level), 0), [shown]);
  const chosen = chosenRow.value;
  // As it is listed, for who saves the view as a file.
  useEffect(() => {
    const title = `Threads' time by ${by}: ${count(rows.length)} of ${plural(of, "value")}`;
    shownTable.value = () => threadsTable(title, by, shown, rows, (name) => layerName(name, 0, by));
    return () => {
      shownTable.value = null;
    };
  }, [rows, shown, of, by]);
  const known = labels.data.value?.labels ?? [];
  const choices = [...BY, ...known.filter((one) => !(BY as readonly string[]).includes(one))];
  const figure = (key: "level" | "running" | "queued" | "waiting", title: string, hint: string, from: number) => ({
    key: key === "level" ? ("threads" as const) : key,
    title,
    hint: `${hint}. Threads, as a mean over the time that was observed`,
    number: true,
    width: { beside: "92px", phone: "76px", from },
    cell: (row: TimeRow) => cores(row[key]),
  });
  const columns: Column<TimeRow, TimeSortKey>[] = [
    nameColumn(by),
    figure("running", "Running", "On a CPU", 0),
    figure("queued", "For a CPU", "Ready to run, but without a CPU", 420),
    figure("waiting", "Waiting", "Asleep, for whatever", 420),
    figure("level", "Threads", "All of it", 620),
    {
      key: "threads",
      title: scale === "level" ? "What they did" : "What they did, each row as a whole",
      hint: "Running, waiting for a CPU, and waits by what they are for",
      number: false,
      width: { beside: "minmax(160px, 2.4fr)", phone: "minmax(110px, 1.6fr)" },
      cell: (row) => <Bar row={row} shown={shown} whole={scale === "share" ? row.level : most} />,
    },
  ];
  return (
    <section class="card threads-table" aria-label="Threads' time">
      <Busy on={threadTime.loading.value} />
      <div class="toolbar">
        <h2>Threads' time</h2>
        <Choice
          label="by"
          id="threads-by"
          value={by}
          options={choices.map((one) => [one, one] as const)}
          onChoose={(label) => navigate({ by: label, row: "" })}
        />
        <Segments
          name="A bar is"
          value={scale}
          options={[
            ["level", "threads", "Bars are as long as there are threads"],
            ["share", "%", "Each bar is all of its row's time"],
          ]}
          onChoose={setScale}
        />
        <span class="spring" />
        <span class="dim" role="status">
          {isWhole ? plural(of, "value") : `the ${count(rows.length)} of ${plural(of, "value")} with most time`}
        </span>
      </div>
      <div aria-busy={threadTime.stale.value} class="threads-rows">
        <VirtualTable
          label={`Threads' time by ${by}. Enter shows the row over time.`}
          rows={rows}
          keyOf={({ name }) => name}
          columns={columns}
          sort={sort}
          onSort={setSort}
          alone
          shown={chosen === null ? -1 : rows.findIndex(({ name }) => name === chosen)}
          onTake={(row) => navigate({ row: chosen === row.name ? "" : `=${row.name}` })}
          onMenu={(row, beside, x) => showValueMenu(by, row.name, beside, x)}
          empty="No threads here."
        />
      </div>
    </section>
  );
}

/** The parts of a row as lengths, and as text. */
function Bar({ row, shown, whole }: { row: TimeRow; shown: ThreadTime; whole: number }) {
  const parts = shown.parts.map(({ key }, i) => ({ part: partOf(key), level: row.levels[i] ?? 0 }));
  const there = parts.filter(({ level }) => level > 0);
  const text = there
    .map(({ part, level }) => `${part.title} ${cores(level)} (${percent(level / row.level)})`)
    .join(", ");
  return (
    <span class="thread-bar" title={text}>
      {there.map(({ part, level }) => (
        <i
          key={part.key}
          style={{ width: `${whole > 0 ? (100 * level) / whole : 0}%`, background: part.colour[theme.value] }}
        />
      ))}
      <span class="visually-hidden">{text}</span>
    </span>
  );
}
