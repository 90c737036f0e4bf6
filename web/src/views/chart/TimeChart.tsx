/** Cores over time, stacked. uPlot draws axes and layers; the layer above it (`children`) takes the pointer. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { axisNumber } from "../../logic/format.ts";
import { axisTop, type Draw, type Stack, stepsOf } from "../../logic/stack.ts";
import { tickLabels, type Window } from "../../logic/time.ts";
import { useSize } from "../hooks.ts";
import { momentAt, type Plot } from "./place.ts";

interface Props {
  stack: Stack;
  colours: string[];
  range: Window;
  theme: "light" | "dark";
  showCapacity: boolean;
  draw: Draw;
  label: string;
  /** The wheel at a moment; positive is towards the person. */
  onWheel: (moment: number, delta: number) => void;
  children: (plot: Plot) => ComponentChildren;
}

const FONT = "11px system-ui, sans-serif";

export function TimeChart({ stack, colours, range, theme, showCapacity, draw, label, onWheel, children }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const size = useSize(host);
  const [plot, setPlot] = useState<Plot | null>(null);

  // `theme` changes the colours that the drawing reads from the page's style.
  useEffect(() => {
    const element = host.current;
    if (element === null || size.width === 0) return;
    const chart = new uPlot(
      options(stack, colours, range, showCapacity, draw, size, element),
      pointsOf(stack, draw),
      element,
    );
    const ratio = devicePixelRatio;
    const { left, top, width, height } = chart.bbox;
    setPlot({ left: left / ratio, top: top / ratio, width: width / ratio, height: height / ratio, range });
    return () => chart.destroy();
  }, [stack, colours, range.from, range.until, size.width, size.height, theme, showCapacity, draw]);

  return (
    <div class="timechart" role="group" aria-label={label}>
      <div class="timechart-canvas" ref={host} aria-hidden="true" />
      {plot !== null && (
        <div
          class="timechart-plot"
          style={{ left: `${plot.left}px`, top: `${plot.top}px`, width: `${plot.width}px`, height: `${plot.height}px` }}
          onWheel={(event) => {
            // With a modifier it is the browser's zoom.
            if (event.deltaY === 0 || event.ctrlKey || event.metaKey) return;
            event.preventDefault();
            onWheel(momentAt(plot, event.clientX - event.currentTarget.getBoundingClientRect().left), event.deltaY);
          }}
        >
          {children(plot)}
        </div>
      )}
    </div>
  );
}

/** Upper layers first: each is painted down to the axis, and the next lower one over it. */
function pointsOf(stack: Stack, draw: Draw): uPlot.AlignedData {
  const { times, columns } = stepsOf(stack, draw);
  return [times, ...columns.slice(0, -1).reverse(), columns[columns.length - 1] ?? []];
}

function options(
  stack: Stack,
  colours: string[],
  range: Window,
  showCapacity: boolean,
  draw: Draw,
  size: { width: number; height: number },
  element: HTMLElement,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const stepped = uPlot.paths.stepped?.({ align: 1, alignGaps: 1 });
  if (stepped === undefined) throw new Error("uPlot was built without stepped paths");
  const axis = { stroke: colour("--dim"), font: FONT, ticks: { show: false } };
  return {
    width: size.width,
    height: size.height,
    ms: 1,
    padding: [8, 26, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    select: { show: false, left: 0, top: 0, width: 0, height: 0 },
    scales: {
      x: { time: true, range: () => [range.from, range.until] },
      y: { range: () => [0, axisTop(stack, showCapacity, draw)] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        gap: 4,
        space: 70,
        grid: { show: false },
        values: (_, splits) =>
          tickLabels(splits, splits.length > 1 ? (splits[1] as number) - (splits[0] as number) : 0),
      },
      {
        ...axis,
        size: 44,
        gap: 4,
        space: 28,
        grid: { stroke: colour("--grid"), width: 1 },
        values: (_, splits) => splits.map(axisNumber),
      },
    ],
    series: [
      {},
      ...stack.layers
        .map((_, i) => ({ ...inkOf(colours[i] as string, draw), paths: stepped, points: { show: false } }))
        .reverse(),
      {
        show: showCapacity,
        stroke: colour("--dim"),
        width: 1,
        dash: [4, 4],
        paths: stepped,

        points: { show: false },
      },
    ],
    hooks: { drawClear: [(chart) => hatch(chart, stack, colour("--hatch"), colour("--grid"))] },
  };
}

function inkOf(colour: string, draw: Draw) {
  return draw === "stacked" ? { fill: colour, width: 0 } : { stroke: colour, width: 1.5 };
}

/** Time without any agent is hatched over its whole height, time that only some nodes covered along the axis. */
function hatch(chart: uPlot, stack: Stack, line: string, ground: string): void {
  const { ctx, bbox } = chart;
  const step = 7 * devicePixelRatio;
  const paint = (window: Window, height: number) => {
    const left = Math.max(bbox.left, chart.valToPos(window.from, "x", true));
    const right = Math.min(bbox.left + bbox.width, chart.valToPos(window.until, "x", true));
    if (right <= left) return;
    const top = bbox.top + bbox.height - height;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, right - left, height);
    ctx.clip();
    ctx.fillStyle = ground;
    ctx.globalAlpha = 0.5;
    ctx.fillRect(left, top, right - left, height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = line;
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    for (let x = left - (left % step) - height; x < right; x += step) {
      ctx.moveTo(x, top + height);
      ctx.lineTo(x + height, top);
    }
    ctx.stroke();
    ctx.restore();
  };
  for (const window of stack.uncovered) paint(window, bbox.height);
  for (const window of stack.partly) paint(window, 5 * devicePixelRatio);
}
