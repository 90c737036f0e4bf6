/**
 * Whether an answer may be wrong for what it is made of. In: what was observed of a window, what its stacks lack, what
 * was lost. Out: reasons, and a grade. Time before the first agent and behind the newest sample, idle time and ticks
 * that never came make no answer wrong.
 */
import type { Exposure, Quality } from "../../api/types.ts";
import { duration, percent, plural } from "../text/format.ts";
import type { Window } from "../time/time.ts";
import { gapsOf, lossOf, MUCH_UNCOVERED, unseenOf, waitsText } from "./loss.ts";

export type Grade = "good" | "check" | "poor";

export interface Fault {
  text: string;
  /** So much is missing that the rest may not stand for it. */
  isGrave: boolean;
}

/** Beyond these parts the rest may be unlike the whole. */
const GRAVE_LOSS = 0.05;
const GRAVE_GAP = 0.25;

export interface Seen {
  window: Window;
  samples: number;
  exposure: Exposure;
  quality: Quality;
}

export function faultsOf({ window, samples, exposure, quality }: Seen): Fault[] {
  const faults: Fault[] = [];
  const length = window.until - window.from;
  const { inside } = gapsOf(exposure, window);
  if (inside > MUCH_UNCOVERED * length)
    faults.push({ text: `a coverage gap of ${duration(inside / 1000)}`, isGrave: inside > GRAVE_GAP * length });
  const unseen = unseenOf(exposure);
  if (unseen > 0)
    faults.push({ text: `coverage gaps in ${percent(unseen)} of the nodes' time`, isGrave: unseen > GRAVE_GAP });
  const lost = lossOf(quality.lost).samples;
  if (lost > 0) faults.push({ text: `${plural(lost, "sample")} lost`, isGrave: lost > GRAVE_LOSS * (samples + lost) });
  const waits = waitsText(exposure);
  if (waits !== "") faults.push({ text: waits, isGrave: false });
  return faults;
}

export function gradeOf(faults: readonly Pick<Fault, "isGrave">[]): Grade {
  if (faults.length === 0) return "good";
  return faults.some(({ isGrave }) => isGrave) ? "poor" : "check";
}
