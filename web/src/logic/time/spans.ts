/**
 * Spans of time in the address, `FROM-UNTIL` in Unix milliseconds with up to three decimals: what is marked in a
 * heatmap and what of a timeline is in sight. Shorter than the windows of `windows.ts`: they may last less than a
 * second.
 */
import type { Window } from "./time.ts";

const TEXT = /^(\d{1,14}(?:\.\d{1,3})?)-(\d{1,14}(?:\.\d{1,3})?)$/;

/** Null where the text is none, or where it has no length. */
export function parseSpan(text: string): Window | null {
  const read = TEXT.exec(text);
  if (read === null) return null;
  const [from, until] = [Number(read[1]), Number(read[2])];
  return from < until ? { from, until } : null;
}

export function spanText({ from, until }: Window): string {
  const short = (ms: number) => String(Number(ms.toFixed(3)));
  return `${short(from)}-${short(until)}`;
}
