/**
 * What agents lost, or were not there for. In: samples by cause, a window's exposure. Out: their sum and both as text,
 * and the share not seen.
 */
import type { Exposure, Ticks } from "../../api/types.ts";
import { brief, count, percent } from "../text/format.ts";
import type { Window } from "../time/time.ts";

/** Up to this share of a window, time without agents is not worth a word. */
export const MUCH_UNCOVERED = 0.02;

/** Edges of gaps and of windows are this near to each other where they are one. */
const EDGE_MS = 1_000;

/**
 * Milliseconds of a window without any agent: in all, and of it between times that were covered, which is what an
 * answer lacks.
 */
export function gapsOf({ gaps }: Pick<Exposure, "gaps">, { from, until }: Window): { all: number; inside: number } {
  const sum = (of: Exposure["gaps"]) => of.reduce((all, [begin, end]) => all + end - begin, 0);
  const all = gaps ?? [];
  return { all: sum(all), inside: sum(all.filter(([begin, end]) => begin > from + EDGE_MS && end < until - EDGE_MS)) };
}

/** The share of its nodes' time that no agent saw; 0 where it is too little to tell. */
export function unseenOf({ node_share }: Exposure): number {
  const unseen = 1 - (node_share ?? 1);
  return unseen > MUCH_UNCOVERED ? unseen : 0;
}

/** The share of CPU time that no tick tells of; 0 where it is too little to tell. */
export function missedOf({ missed_share }: Ticks): number {
  const missed = missed_share ?? 0;
  return missed > MUCH_UNCOVERED ? missed : 0;
}

/** The share of the time in which waits were observed, where it is a part; null where it is all, or not said. */
export function waitsPart({ waits_share }: Pick<Exposure, "waits_share">): number | null {
  return typeof waits_share === "number" && waits_share < 1 - MUCH_UNCOVERED ? waits_share : null;
}

/** Where switches are so many that it would cost too much, agents look in turns; empty where they saw all. */
export function waitsText(exposure: Pick<Exposure, "waits_share">): string {
  const part = waitsPart(exposure);
  return part === null ? "" : `waits were observed for ${percent(part)} of the time; their sums are extrapolated`;
}

/** `12 %`; `0 %, 50 % no timer ticks` where ticks are missing; empty where nobody counted. */
export function idleText(ticks: Ticks): string {
  const { idle_share } = ticks;
  if (idle_share === null || idle_share === undefined) return "";
  const missed = missedOf(ticks);
  return percent(idle_share) + (missed > 0 ? `, ${percent(missed)} no timer ticks` : "");
}

export interface Loss {
  samples: number;
  /** `ring_full 12.3 k`, with and without all digits; empty where nothing was lost. */
  brief: string;
  text: string;
}

export function lossOf(byCause: Record<string, number> | undefined): Loss {
  const lost = Object.entries(byCause ?? {}).filter(([, samples]) => samples > 0);
  return {
    samples: lost.reduce((sum, [, samples]) => sum + samples, 0),
    brief: lost.map(([cause, samples]) => `${cause} ${brief(samples)}`).join(", "),
    text: lost.map(([cause, samples]) => `${cause}: ${count(samples)}`).join(", "),
  };
}
