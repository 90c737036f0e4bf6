/** Where a moment stands in the plot, and back. */
import type { Window } from "../../logic/time/time.ts";

/** The plot within the chart, CSS pixels, and the time that its width stands for. */
export interface Plot {
  left: number;
  top: number;
  width: number;
  height: number;
  range: Window;
}

export function momentAt(plot: Plot, x: number): number {
  const { from, until } = plot.range;
  return from + (Math.min(Math.max(x, 0), plot.width) / plot.width) * (until - from);
}

export function pixelOf(plot: Plot, moment: number): number {
  const { from, until } = plot.range;
  return ((moment - from) / (until - from)) * plot.width;
}
