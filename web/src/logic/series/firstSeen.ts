/**
 * Since when something runs, read off its cores over time. In: a stack of all of it. Out: moments, Unix milliseconds.
 */
import type { Stack } from "./stack.ts";

export interface FirstSeen {
  /** The first step with any of it; null where there is none. */
  first: number | null;
  /** It is there from the first step on that anybody watched: it may have begun before. */
  isEarlier: boolean;
  peak: number;
  /** The step of the peak. */
  peakAt: number;
}

export function firstSeen({ total, edges, peak }: Stack): FirstSeen {
  const first = total.findIndex((cores) => cores !== null && cores > 0);
  return {
    first: first < 0 ? null : (edges[first] as number),
    isEarlier: first >= 0 && first === total.findIndex((cores) => cores !== null),
    peak,
    peakAt: edges[total.indexOf(peak)] ?? 0,
  };
}
