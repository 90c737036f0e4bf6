/**
 * A small chart of one line. In: a series answer whose lines are added up. Out: the cores of each step, and the paths that
 * draw them; a step that nobody covered is a gap.
 */
import type { SeriesAnswer } from "../api/types.ts";

export interface Spark {
  times: number[];
  /** Cores of each step; null where nobody watched. */
  values: (number | null)[];
  peak: number;
  peakAt: number;
  /** The first step with any sample, Unix milliseconds; null where there is none. */
  since: number | null;
  stepMs: number;
}

export function sparkOf({ series, other, covered, times, step_ms }: SeriesAnswer): Spark {
  const lines = [...series, ...(other === null ? [] : [other])];
  const values = times.map((_, i) => {
    const sum = lines.reduce((cores, line) => cores + (line.cores[i] ?? 0), 0);
    return (covered[i] ?? 0) > 0 || sum > 0 ? sum : null;
  });
  const peak = values.reduce((most: number, value) => Math.max(most, value ?? 0), 0);
  const first = values.findIndex((value) => value !== null && value > 0);
  return {
    times,
    values,
    peak,
    peakAt: times[values.indexOf(peak)] ?? 0,
    since: times[first] ?? null,
    stepMs: step_ms,
  };
}

/** The filled area as an SVG path, in a box of this size. */
export function sparkPath({ values, peak }: Spark, width: number, height: number): string {
  if (peak <= 0) return "";
  const x = (i: number) => ((i / values.length) * width).toFixed(1);
  const y = (value: number) => (height - (value / peak) * (height - 1)).toFixed(1);
  let path = "";
  let isOpen = false;
  values.forEach((value, i) => {
    if (value !== null) {
      path += isOpen ? `V${y(value)}H${x(i + 1)}` : `M${x(i)} ${height}V${y(value)}H${x(i + 1)}`;
      isOpen = true;
    } else if (isOpen) {
      path += `V${height}Z`;
      isOpen = false;
    }
  });
  return isOpen ? `${path}V${height}Z` : path;
}
