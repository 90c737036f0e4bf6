/**
 * What makes two windows hard to compare. In: both sides of a difference, the agents that watched each. Out: a line for
 * each reason, the gravest first, with what follows from it; empty where nothing is known against the comparison.
 */
import type { DiffAnswer, DiffSide } from "../../api/types.ts";
import { faultsOf } from "../agents/grade.ts";
import { gapsOf, lossOf, MUCH_UNCOVERED, unseenOf, waitsPart } from "../agents/loss.ts";
import { ratesOf } from "../agents/rates.ts";
import { count, digits, duration, percent, plural, shareOf } from "../text/format.ts";
import { isWait } from "../text/unit.ts";
import { lengthOfAll, timesOf, type Window } from "../time/windows.ts";

export interface Caveat {
  what: string;
  /** What follows from it for the reader. */
  so: string;
  /** It makes no difference wrong: it is told, and is no warning. */
  isNote?: boolean;
}

/** Versions of the agents that reported in each window. */
export interface Watchers {
  base: readonly string[];
  comparison: readonly string[];
}

type Answer = Pick<DiffAnswer, "normalize" | "base" | "comparison"> & { type?: string };

/** Differences between the sides that are worth a word. */
const MUCH_MORE = 0.05;
const LENGTHS_DIFFER = 0.02;

export function caveatsOf(answer: Answer, watchers: Watchers | null): Caveat[] {
  const { base, comparison } = answer;
  if (base.samples === 0 && comparison.samples === 0) return [];
  const sides: [string, DiffSide][] = [
    ["A", base],
    ["B", comparison],
  ];
  return [
    ...sides.flatMap(uncovered),
    ...sides.flatMap(partly),
    ...sides.flatMap(losses),
    ...sides.flatMap(inTurns),
    // A wait's value is its length: it says nothing of a rate.
    ...(isWait(answer.type ?? "") ? [] : rates(base, comparison)),
    ...lengths(answer),
    ...overlap(base, comparison),
    ...nodes(answer),
    ...stacks(base, comparison),
    ...versions(watchers),
  ];
}

/** Of them what may make the difference wrong, for a grade of its data. */
export function pairFaults(answer: Answer, watchers: Watchers | null): { text: string; isGrave: boolean }[] {
  const sides = [answer.base, answer.comparison];
  const isGrave = sides.some((side) => faultsOf({ ...side, window: side }).some((fault) => fault.isGrave));
  return caveatsOf(answer, watchers)
    .filter(({ isNote }) => isNote !== true)
    .map(({ what }) => ({ text: what, isGrave }));
}

function uncovered([name, side]: [string, DiffSide]): Caveat[] {
  const gap = side.exposure.gaps.reduce((sum, [from, until]) => sum + until - from, 0);
  const length = lengthOfAll(timesOf(side));
  if (gap <= MUCH_UNCOVERED * length) return [];
  const what = `No agent covered ${duration(gap / 1000)} of the ${duration(length / 1000)} of ${name}`;
  // Before the first agent, or behind the newest sample.
  const isNote = side.samples > 0 && gapsOf(side.exposure, side).inside <= MUCH_UNCOVERED * length;
  return [{ what, so: "rates leave that time out, absolute numbers and what happened then are missing", isNote }];
}

/** Agents that come and go one after the other leave no gap, but holes. */
function partly([name, { exposure }]: [string, DiffSide]): Caveat[] {
  const unseen = unseenOf(exposure);
  if (unseen === 0) return [];
  const nodes = plural(exposure.nodes, "node");
  const what = `Agents covered the ${nodes} of ${name} for ${percent(1 - unseen)} of the time in the mean`;
  return [
    { what, so: "a node counts with what was seen of it: what ran there otherwise is missing from cores and shares" },
  ];
}

function losses([name, side]: [string, DiffSide]): Caveat[] {
  const lost = lossOf(side.quality.lost);
  if (lost.samples === 0) return [];
  const share = lost.samples / (side.samples + lost.samples);
  const causes = `${lost.text}; of what was taken and selected ${percent(share)}`;
  return [
    {
      what: `${name} lost ${plural(lost.samples, "sample")} (${causes})`,
      so: "what was lost may not be spread like what was kept: a smaller difference may be that",
    },
  ];
}

/** Agents that look at waits in turns. */
function inTurns([name, { exposure }]: [string, DiffSide]): Caveat[] {
  const part = waitsPart(exposure);
  if (part === null) return [];
  return [
    {
      what: `Waits of ${name} were observed for ${percent(part)} of the time`,
      so: "their sums are extrapolated from that: a smaller difference may be chance",
    },
  ];
}

function hertzOf(side: DiffSide): string {
  const mixed = ratesOf(side.periods);
  if (mixed !== null) return mixed.brief;
  const period = side.periods.find((one) => one.period_ns > 0)?.period_ns;
  return period === undefined ? "" : `${digits(1e9 / period)} Hz`;
}

function rates(base: DiffSide, comparison: DiffSide): Caveat[] {
  const [a, b] = [hertzOf(base), hertzOf(comparison)];
  if (a === "" || b === "" || (a === b && ratesOf(base.periods) === null)) return [];
  const what = a === b ? `Both were sampled at ${a}` : `A was sampled at ${a}, B at ${b}`;
  return [
    {
      what,
      so:
        "cores and shares are comparable, counts of samples are not; " +
        "the side of the lower rate sees less of rare frames",
    },
  ];
}

function lengths({ normalize, base, comparison }: Answer): Caveat[] {
  const [a, b] = [lengthOfAll(timesOf(base)), lengthOfAll(timesOf(comparison))];
  if (normalize !== "absolute" || Math.abs(a - b) <= LENGTHS_DIFFER * Math.max(a, b)) return [];
  const what = `A is ${duration(a / 1000)} long, B ${duration(b / 1000)}`;
  return [{ what, so: "absolute numbers differ with the length: compare rates, or choose Equal lengths" }];
}

function overlap(base: DiffSide, comparison: DiffSide): Caveat[] {
  const shared = timesOf(base)
    .flatMap((a) => timesOf(comparison).map((b) => Math.min(a.until, b.until) - Math.max(a.from, b.from)))
    .reduce((sum, length) => sum + Math.max(0, length), 0);
  if (shared <= 0 || base.query !== comparison.query) return [];
  const what = `A and B share ${duration(shared / 1000)}`;
  return [{ what, so: "the same samples are on both sides: differences look smaller, and surer, than they are" }];
}

function nodes({ normalize, base, comparison }: Answer): Caveat[] {
  const [a, b] = [base.exposure.nodes, comparison.exposure.nodes];
  if (a === b || a === 0 || b === 0 || normalize === "share") return [];
  return [
    {
      what: `A is of ${plural(a, "node")}, B of ${count(b)}`,
      so: "cores are summed over nodes: shares compare better",
    },
  ];
}

function stacks(base: DiffSide, comparison: DiffSide): Caveat[] {
  const kinds: [string, "truncated_samples" | "unnamed_samples"][] = [
    ["truncated stacks", "truncated_samples"],
    ["unsymbolized stacks", "unnamed_samples"],
  ];
  if (base.samples === 0 || comparison.samples === 0) return [];
  return kinds.flatMap(([word, key]) => {
    const [a, b] = [base, comparison].map(({ quality, samples }) => shareOf(quality[key], samples)) as [number, number];
    if (Math.abs(a - b) < MUCH_MORE) return [];
    const what = `${percent(a)} ${word} in A, ${percent(b)} in B`;
    return [{ what, so: "frames may only have moved to another place of the graph, or got a name" }];
  });
}

function versions(watchers: Watchers | null): Caveat[] {
  if (watchers === null) return [];
  const [a, b] = [watchers.base, watchers.comparison].map((list) => [...list].sort().join(", "));
  if (a === b || a === "" || b === "") return [];
  return [
    {
      what: `Agents of A had version ${a}, of B ${b}`,
      so: "unwinding and names may differ between them",
      isNote: true,
    },
  ];
}

/** Asks which agents' versions reported in each window, as rows of the window's place (0 or 1) and the version. */
export function versionsStatement(windows: readonly Window[]): string {
  const one = ({ from, until }: Window, place: number) =>
    `SELECT DISTINCT ${place} AS side, agent_version FROM batches ` +
    `WHERE until_ns > ${nanoseconds(from)} AND from_ns < ${nanoseconds(until)}`;
  return windows.map(one).join(" UNION ALL ");
}

/** Exact, as text: a number would lose the last digits. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms)}000000`;
}

export function watchersOf(rows: readonly (readonly unknown[])[]): Watchers {
  const of = (place: number) => rows.filter(([side]) => Number(side) === place).map(([, version]) => String(version));
  return { base: of(0), comparison: of(1) };
}
