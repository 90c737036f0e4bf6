/** The chart of cores over time with its list; what lies over the plot differs between the views. */
import type { ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { ApiError, SeriesAnswer } from "../api/index.ts";
import { layerColours } from "../logic/colour.ts";
import { cores, percent } from "../logic/format.ts";
import { axisTop, layerAt, type Stack, stepAt } from "../logic/stack.ts";
import { clock, type Window } from "../logic/time.ts";
import { labels, theme } from "../state/data.ts";
import { navigate, page } from "../state/index.ts";
import type { Resource } from "../state/resource.ts";
import type { Hover } from "./chart/Brush.tsx";
import { type Plot, TimeChart } from "./chart/TimeChart.tsx";
import { LayerList, layerName } from "./LayerList.tsx";
import { Busy, Missing } from "./Notices.tsx";

interface Drawing {
  label: string;
  tools?: ComponentChildren;
  overlay: (plot: Plot, chart: Hovering) => ComponentChildren;
}

interface Props extends Drawing {
  series: Resource<SeriesAnswer>;
  stack: ReadonlySignal<Stack | null>;
  /** What the profile below the chart says; the same refusal is not said twice. */
  saidBelow: ApiError | null;
}

export interface Hovering {
  hover: Hover | null;
  onHover: (hover: Hover | null) => void;
  /** The layer under the pointer as label and value; null for none, and for the rest that is shown as one. */
  layer: { by: string; value: string } | null;
  caption: string;
}

const BY = ["service", "node", "process", "thread", "mode", "container", "pod", "namespace", "workload", "unit", "cpu"];

export function ChartCard({ series, stack, saidBelow, ...drawing }: Props) {
  const [answer, drawn, error] = [series.data.value, stack.value, series.error.value];
  const loading = series.loading.value;
  if (answer !== null && drawn !== null) return <Chart answer={answer} stack={drawn} loading={loading} {...drawing} />;
  if (error !== null && saidBelow?.code === error.code) return null;
  return <Missing error={error} loading={loading} kind="chart" />;
}

interface ChartProps extends Drawing {
  answer: SeriesAnswer;
  stack: Stack;
  loading: boolean;
}

function Chart({ answer, stack, loading, label, tools, overlay }: ChartProps) {
  const [hover, setHover] = useState<Hover | null>(null);
  const colours = useMemo(() => layerColours(stack.layers.map((layer) => layer.value)), [stack]);
  const range: Window = useMemo(() => ({ from: answer.from, until: answer.until }), [answer]);
  const { by, capacity } = page.value;
  const layer =
    hover === null ? -1 : layerAt(stack, stepAt(stack.edges, hover.moment), hover.height * axisTop(stack, capacity));
  const under = stack.layers[layer];
  const value = under?.value ?? null;
  const caption = under === undefined ? "" : layerName(under.value, answer.other?.series ?? 0);
  const known = labels.data.value?.labels;
  const choices =
    known === undefined
      ? BY
      : [...BY.filter((one) => known.includes(one)), ...known.filter((one) => !BY.includes(one))];
  return (
    <section class="card chart" aria-label={label}>
      <Busy on={loading} />
      <div class="toolbar">
        <h2>Cores</h2>
        <label class="inline">
          by{" "}
          <select value={by} data-testid="by" onChange={(event) => navigate({ by: event.currentTarget.value })}>
            {choices.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        {tools}
        <span class="spring" />
        <ChartFigures stack={stack} hover={hover?.moment ?? null} />
        <label class="inline check">
          <input type="checkbox" checked={capacity} onChange={() => navigate({ capacity: !capacity })} /> up to capacity
        </label>
      </div>
      <div class="chart-row">
        <TimeChart
          stack={stack}
          colours={colours}
          range={range}
          theme={theme.value}
          showCapacity={capacity}
          label={label}
        >
          {(plot) =>
            overlay(plot, {
              hover,
              onHover: setHover,
              layer: value === null ? null : { by: answer.by, value },
              caption,
            })
          }
        </TimeChart>
        <LayerList
          stack={stack}
          by={answer.by}
          colours={colours}
          hover={hover?.moment ?? null}
          highlighted={layer}
          otherCount={answer.other?.series ?? 0}
        />
      </div>
    </section>
  );
}

function ChartFigures({ stack, hover }: { stack: Stack; hover: number | null }) {
  const step = hover === null ? -1 : stepAt(stack.edges, hover);
  if (step >= 0) {
    const total = stack.total[step];
    const capacity = stack.capacity[step];
    return (
      <span class="figures">
        <b>{clock(stack.edges[step] as number)}</b>{" "}
        {total === null || total === undefined ? (
          "no agent covered this time"
        ) : (
          <>
            {cores(total)} cores{capacity === null || capacity === undefined ? "" : ` of ${cores(capacity)}`}
          </>
        )}
      </span>
    );
  }
  const { meanTotal, meanCapacity, meanIdle } = stack;
  return (
    <span class="figures">
      <b>{cores(meanTotal)}</b> cores{meanCapacity > 0 ? ` of ${cores(meanCapacity)}` : ""}
      {meanIdle !== null && meanCapacity > 0 ? `, ${percent(meanIdle / meanCapacity)} idle` : ""}
    </span>
  );
}
