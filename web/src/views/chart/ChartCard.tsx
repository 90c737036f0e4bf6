/** The chart of cores over time with its list; what lies over the plot differs between the views. */
import type { ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { ApiError } from "../../api/error.ts";
import type { SeriesAnswer } from "../../api/types.ts";
import { kernelShade, layerColour } from "../../logic/colour.ts";
import { coveredShare, layerAt, type Mode, NOTHING, type Stack, stepAt, topOf } from "../../logic/series/stack.ts";
import { percent, shareOf } from "../../logic/text/format.ts";
import { clock, type Window } from "../../logic/time/time.ts";
import { isOpen, navigate, page } from "../../state/address/page.ts";
import { labels } from "../../state/answers/server.ts";
import type { Resource } from "../../state/question/resource.ts";
import { theme } from "../../state/screen/theme.ts";
import { charted, chartScale, level, levelIn, levelTitle } from "../../state/screen/units.ts";
import { MarkersMenu } from "../lazyViews.tsx";
import { Check } from "../ui/Check.tsx";
import { Choice, Segments } from "../ui/Choice.tsx";
import { FoldButton } from "../ui/Fold.tsx";
import { NARROW, PHONE, useMedia } from "../ui/hooks.ts";
import { Busy, Missing } from "../ui/Notices.tsx";
import type { Hover } from "./Brush.tsx";
import { LayerList, layerText } from "./LayerList.tsx";
import type { Plot } from "./place.ts";
import { TimeChart } from "./TimeChart.tsx";
import { useZoom } from "./useZoom.ts";

interface Drawing {
  label: string;
  /** Another selection over the same time, of which the sum is drawn as a line of side A. */
  beside?: Stack | null;
  tools?: ComponentChildren;
  /**
   * What is to be done next, and nobody shall have to look for: where the tools are folded, it stands in a line above
   * the chart, which is there by itself so that nothing moves when it comes. Left out: there is no such line.
   */
  suggestion?: ComponentChildren;
  /** The window that the wheel or keys zoomed to. */
  onRange: (window: Window) => void;
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
  layer: { by: string; value: string; mode: Mode | null } | null;
  caption: string;
  /** The level at the line, in words. */
  spoken: string;
  /** Zooms around a moment: in for positive steps. */
  zoom: (moment: number, steps: number) => void;
}

/** A line is meant by a pointer within this part of the axis. */
const REACH = 0.05;

const DRAWN = [
  ["stacked", "Stacked"],
  ["lines", "Lines"],
] as const;

const BY = ["service", "node", "process", "thread", "mode", "container", "pod", "namespace", "workload", "unit", "cpu"];

export function ChartCard({ series, stack, saidBelow, ...drawing }: Props) {
  const [answer, drawn, error] = [series.data.value, stack.value, series.error.value];
  const loading = series.loading.value;
  if (answer !== null && drawn !== null)
    return <Chart answer={answer} stack={drawn} loading={loading} isStale={series.stale.value} {...drawing} />;
  if (error !== null && saidBelow?.code === error.code) return null;
  return <Missing error={error} loading={loading} kind="chart" />;
}

interface ChartProps extends Drawing {
  answer: SeriesAnswer;
  stack: Stack;
  loading: boolean;
  /** The answer is to an earlier question. */
  isStale: boolean;
}

function Chart({ answer, stack, loading, isStale, label, beside = null, onRange, overlay, ...more }: ChartProps) {
  const [hover, setHover] = useState<Hover | null>(null);
  const shade = theme.value;
  const colours = useMemo(() => coloursOf(stack, shade), [stack, shade]);
  const { range, zoom, onWheel } = useZoom(answer, onRange);
  const { by, capacity, draw } = page.value;
  const top = topOf(stack, beside, capacity, draw);
  const step = hover === null ? -1 : stepAt(stack.edges, hover.moment);
  const layer = hover === null ? -1 : layerAt(stack, step, hover.height * top, draw, REACH * top);
  const under = stack.layers[layer];
  const value = under?.value ?? null;
  const caption = under === undefined ? "" : layerText(under.value, answer.other?.series ?? 0, under.mode, answer.by);
  const total = stack.total[step];
  const spoken = total === undefined || total === null ? uncoveredText(stack, step) : levelIn(total);
  const known = labels.data.value?.labels;
  const choices =
    known === undefined
      ? BY
      : [...BY.filter((one) => known.includes(one)), ...known.filter((one) => !BY.includes(one))];
  const isPhone = useMedia(PHONE);
  const isNarrow = useMedia(NARROW);
  const isWhole = !isPhone || isOpen("chart");
  const { tools, suggestion } = more;
  const hasLine = isNarrow && suggestion !== undefined;
  const figures = <ChartFigures stack={stack} beside={beside} hover={hover?.moment ?? null} isStale={isStale} />;
  return (
    <section class="card chart" aria-label={label}>
      <Busy on={loading} />
      {isNarrow && (
        <FoldButton fold="chart" name="Controls and layers of the chart" class="icon chart-more">
          ⋯
        </FoldButton>
      )}
      {hasLine && (
        <div class="chart-line">
          {figures}
          {suggestion}
        </div>
      )}
      <div class="toolbar" hidden={isNarrow && !isOpen("chart")}>
        <h2>{chartTitle()}</h2>
        <Choice
          label="by"
          id="by"
          value={by}
          options={choices.map((one) => [one, one] as const)}
          onChoose={(chosen) => navigate({ by: chosen })}
        />
        <Segments name="Draw" value={draw} options={DRAWN} onChoose={(chosen) => navigate({ draw: chosen })} />
        {tools}
        {!isNarrow && suggestion}
        <MarkersMenu />
        <span class="spring" />
        {!hasLine && figures}
        {!charted.value.isWait && (
          <Check checked={capacity} onToggle={() => navigate({ capacity: !capacity })}>
            Scale to capacity
          </Check>
        )}
      </div>
      <div class="chart-row" aria-busy={isStale}>
        <TimeChart
          stack={stack}
          beside={beside}
          top={top}
          colours={colours}
          range={range}
          theme={theme.value}
          showCapacity={capacity}
          draw={draw}
          factor={chartScale.value?.factor ?? 1}
          label={label}
          onWheel={onWheel}
        >
          {(plot) =>
            overlay(plot, {
              hover,
              onHover: setHover,
              layer: value === null ? null : { by: answer.by, value, mode: under?.mode ?? null },
              caption,
              spoken,
              zoom,
            })
          }
        </TimeChart>
        {isWhole && (
          <LayerList
            stack={stack}
            by={answer.by}
            colours={colours}
            hover={hover?.moment ?? null}
            highlighted={layer}
            otherCount={answer.other?.series ?? 0}
          />
        )}
      </div>
    </section>
  );
}

/** With a capital where it is no unit of a scale. */
function chartTitle(): string {
  const title = levelTitle();
  return charted.value.isTime && chartScale.value === null ? title.charAt(0).toUpperCase() + title.slice(1) : title;
}

function coloursOf(stack: Stack, shade: "light" | "dark"): string[] {
  return stack.layers.map(({ value, mode }) => {
    const colour = layerColour(value);
    return mode === "kernel" ? kernelShade(colour, shade) : colour;
  });
}

/** Why a step has no level. */
function uncoveredText(stack: Stack, step: number): string {
  const part = coveredShare(stack, step);
  return part > NOTHING ? `only ${percent(part)} of this time was covered` : "no agent covered this time";
}

interface FiguresProps {
  stack: Stack;
  beside: Stack | null;
  hover: number | null;
  isStale: boolean;
}

function ChartFigures({ stack, beside, hover, isStale }: FiguresProps) {
  const step = hover === null ? -1 : stepAt(stack.edges, hover);
  const other = hover === null || beside === null ? null : beside.total[stepAt(beside.edges, hover)];
  if (step >= 0) {
    const total = stack.total[step];
    const capacity = stack.capacity[step];
    return (
      <span class="figures" aria-busy={isStale}>
        <b>{clock(stack.edges[step] as number)}</b>{" "}
        {total === null || total === undefined ? (
          uncoveredText(stack, step)
        ) : (
          <>
            {other !== null && other !== undefined && `A ${level(other)}, B `}
            {levelIn(total)}
            {capacity === null || capacity === undefined || !charted.value.isTime ? "" : ` of ${level(capacity)}`}
          </>
        )}
      </span>
    );
  }
  const { meanTotal, meanCapacity, meanIdle } = stack;
  return (
    <span class="figures" aria-busy={isStale}>
      {beside !== null && (
        <>
          A <b>{level(beside.meanTotal)}</b>, B{" "}
        </>
      )}
      <b>{level(meanTotal)}</b> {levelTitle()}
      {meanCapacity > 0 && charted.value.isTime && !charted.value.isWait ? ` of ${level(meanCapacity)}` : ""}
      {meanIdle !== null && meanCapacity > 0 ? `, ${percent(shareOf(meanIdle, meanCapacity))} idle` : ""}
    </span>
  );
}
