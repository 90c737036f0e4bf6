/**
 * Where axes have labels. In: the range of an axis and how many labels there is room for. Out: round values within the
 * range.
 */

import { aheadOfUtc, calendarOf, momentOf } from "./zone.ts";

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
] as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** Of days since 1970, which began with a Thursday. */
const FIRST_MONDAY = 4;

/** Round times (Unix milliseconds) of the chosen zone, at most so many, whatever its clocks do in between. */
export function timeTicks(from: number, until: number, most: number): { ticks: number[]; stepMs: number } {
  const fits = (step: number) => (until - from) / step <= most;
  const stepMs = STEPS_MS.find(fits) ?? Math.max(1, Math.ceil((until - from) / WEEK_MS / most)) * WEEK_MS;
  const all = stepMs <= HOUR_MS ? evenTicks(from, until, stepMs) : calendarTicks(from, until, stepMs);
  return { ticks: all.filter((tick) => tick >= from && tick <= until), stepMs };
}

/**
 * Clocks change by whole and half hours: what is as short stands at round times on both sides of a change, and comes
 * twice where an hour does.
 */
function evenTicks(from: number, until: number, stepMs: number): number[] {
  const ticks: number[] = [];
  const behindUtc = (at: number) => -aheadOfUtc(at) * 60_000;
  const next = (at: number) => Math.ceil((at - behindUtc(at)) / stepMs) * stepMs + behindUtc(at);
  // Where clocks change by half an hour, whole hours stand elsewhere from then on.
  for (let tick = next(from); tick <= until; tick = next(tick + 1)) ticks.push(tick);
  return ticks;
}

/**
 * By the clock on the wall, from day to day: a day may have 23 or 25 hours, and no hour is told that its clocks leave
 * out.
 */
function calendarTicks(from: number, until: number, stepMs: number): number[] {
  const ticks: number[] = [];
  const begin = calendarOf(from);
  for (let offset = 0; ; offset++) {
    const midnight = momentOf(begin.year, begin.month, begin.day + offset);
    if (midnight > until) return ticks;
    const days = Date.UTC(begin.year, begin.month, begin.day + offset) / DAY_MS;
    if (stepMs >= DAY_MS) {
      if (((days - FIRST_MONDAY) * DAY_MS) % stepMs === 0 || stepMs === DAY_MS) ticks.push(midnight);
      continue;
    }
    for (let hour = 0; hour < 24; hour += stepMs / HOUR_MS) {
      const tick = momentOf(begin.year, begin.month, begin.day + offset, hour);
      if (calendarOf(tick).hour === hour) ticks.push(tick);
    }
  }
}

/** Round levels from zero up to `top`: at most so many above zero. */
export function levelTicks(top: number, most: number): number[] {
  const least = top / Math.max(1, most);
  const magnitude = 10 ** Math.floor(Math.log10(least));
  // What is one by a hair must not become two.
  const step = ([1, 2, 5, 10].find((times) => times * magnitude >= least * (1 - 1e-9)) ?? 10) * magnitude;
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}
