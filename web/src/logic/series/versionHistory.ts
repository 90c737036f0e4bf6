/**
 * A function's course by version. In: a series by version over a long range. Out: where its samples begin, so that
 * the range can be drawn closely; a line for each version, in the order in which they came.
 */
import type { SeriesAnswer } from "../../api/types.ts";
import { compareText } from "../text/names.ts";
import type { Window } from "../time/time.ts";

export interface VersionLine {
  version: string;
  samples: number;
  cores: (number | null)[];
  /** Mean of the steps in which it ran: what the function takes while this version runs. */
  mean: number;
  first: number;
  last: number;
}

/** Less than this part of a range is worth to be asked for again, closely. */
const CLOSE = 0.5;

/** The range from the first step with samples on; null where the answer is close enough. */
export function closerRange({ times, series, from, until }: SeriesAnswer): Window | null {
  const first = times.findIndex((_, at) => series.some(({ cores }) => (cores[at] ?? 0) > 0));
  if (first < 0) return null;
  const begin = times[first] as number;
  return until - begin < CLOSE * (until - from) ? { from: begin, until } : null;
}

export function versionLines({ times, until, series }: SeriesAnswer): VersionLine[] {
  return series
    .flatMap(({ value, samples, cores }) => {
      const ran = cores.flatMap((level, at) => (level !== null && level > 0 ? [{ level, at }] : []));
      const [first, last] = [ran[0], ran.at(-1)];
      if (first === undefined || last === undefined) return [];
      const mean = ran.reduce((sum, { level }) => sum + level, 0) / ran.length;
      const end = times[last.at + 1] ?? until;
      return [{ version: value, samples, cores, mean, first: times[first.at] as number, last: end }];
    })
    .sort((a, b) => a.first - b.first || a.last - b.last || compareText(a.version, b.version));
}
