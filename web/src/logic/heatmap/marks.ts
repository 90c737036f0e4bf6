/**
 * What of the time is looked at in a heatmap: its columns, and the spans that are marked in it. In: windows and texts
 * of the address. Out: windows, Unix milliseconds.
 */
import { parseSpan } from "../time/spans.ts";
import type { Window } from "../time/time.ts";

/** Offsets of a column that the server is asked for. */
export const ROWS = 100;
/** Lengths of a column that divide by the rows into whole milliseconds. */
export const COLUMN_MS = [
  1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000, 21_600_000,
] as const;
/** More columns than this could not be told apart on a screen. */
const MOST_COLUMNS = 1_200;

/** A span that somebody marked, or all of the window but the other mark. */
export type Mark = Window | "rest";

/** A side of what is looked at: a window and what of it does not count. */
export interface Side {
  window: Window;
  except: Window | null;
}

export function parseMark(text: string): Mark | null {
  return text === "rest" ? text : parseSpan(text);
}

/** What a mark stands for beside the other one; null where there is none, or no other one to be the rest of. */
export function sideOf(mark: Mark | null, other: Mark | null, whole: Window): Side | null {
  if (mark === null) return null;
  if (mark !== "rest") return { window: mark, except: null };
  return other === null || other === "rest" ? null : { window: whole, except: other };
}

/** How long a column is: what was chosen, or the shortest with which the window has not too many. */
export function columnMs(window: Window, chosen: string): number {
  const length = window.until - window.from;
  const fits = (ms: number) => length / ms <= MOST_COLUMNS;
  const wanted = COLUMN_MS.find((ms) => String(ms / 1000) === chosen);
  return wanted !== undefined && fits(wanted) ? wanted : (COLUMN_MS.find(fits) ?? Math.ceil(length / MOST_COLUMNS));
}

/** The window that whole columns cover: offsets are then those of the clock. */
export function aligned({ from, until }: Window, stepMs: number): Window {
  const begin = Math.floor(from / stepMs) * stepMs;
  return { from: begin, until: Math.max(Math.ceil(until / stepMs) * stepMs, begin + stepMs) };
}
