/**
 * What samples of a graph stand for. In: an answer's sums, samples of a frame. Out: seconds, cores, and a frame's
 * figures in a sentence.
 */
import type { DiffAnswer, Normalize } from "../../api/types.ts";
import { kindOf, kindWord } from "../colour.ts";
import { type BothSums, normText, normWords } from "../compare/norm.ts";
import { changeWords, type SideNames } from "../compare/sideNames.ts";
import { figureHead, figureText, type UnitChoice } from "../text/figure.ts";
import { percent, shareOf } from "../text/format.ts";
import { amountText, timeWords, type Unit } from "../text/unit.ts";
import { titleOf } from "../tree/rows.ts";
import { changeOf, kindName, ROOT, type Tree } from "../tree/tree.ts";

/** How samples become seconds and cores. */
export interface Measure {
  title: string;
  /** CPU seconds that one sample stands for. */
  secondsPerSample: number;
  /** Cores that one sample stands for, over the observed time. */
  coresPerSample: number;
  normalize: Normalize | null;
  /** Cores of each side of a comparison, where there are cores: a share alone would hide how much it is. */
  sideCores?: readonly [number, number] | null;
  /** Of a comparison: what samples of both sides stand for, in whatever unit. */
  sums?: BothSums | null;
}

export interface WindowMeasure extends Measure {
  /** Samples of the window, whatever transforms leave of it. */
  samples: number;
  /** Of one window, or of side B in a comparison. */
  unit: Unit;
  /**
   * What numbers are told in, beside the samples themselves; left out: nothing else. Empty: cores, and of a comparison
   * what was judged.
   */
  choice?: UnitChoice | "";
  /** Of a comparison. */
  sideNames: SideNames;
}

interface Sums {
  samples: number;
  cpu_seconds: number | null;
  /** Of types that are time; of others the unit per second. */
  cores: number | null;
  rate?: number;
}

/** Of one window. */
export function measureOf(title: string, { samples, cpu_seconds, cores, rate }: Sums): Measure {
  return {
    title,
    secondsPerSample: shareOf(cpu_seconds ?? 0, samples),
    coresPerSample: shareOf(cores ?? rate ?? 0, samples),
    normalize: null,
  };
}

/** Of a comparison: each sample stands for the same time, and cores are the server's to tell. */
export function measureOfPair(
  title: string,
  periodNs: number,
  normalize: Normalize,
  sideCores: readonly [number, number] | null = null,
  sums: BothSums | null = null,
): Measure {
  return { title, secondsPerSample: periodNs / 1e9, coresPerSample: 0, normalize, sideCores, sums };
}

/** Null where a side has none. */
export function coresOfSides({ base, comparison }: Pick<DiffAnswer, "base" | "comparison">): [number, number] | null {
  return base.cores === null || comparison.cores === null ? null : [base.cores, comparison.cores];
}

export const secondsOf = (samples: number, { secondsPerSample }: Measure) => samples * secondsPerSample;
export const coresOf = (samples: number, { coresPerSample }: Measure) => samples * coresPerSample;

function chosenText(samples: number, choice: UnitChoice, measure: WindowMeasure): string {
  const { unit } = measure;
  const said = figureText(samples, choice, measure);
  // What has no samples in common is told as time already.
  return choice === "time" && unit.name !== "samples"
    ? ""
    : `${said} ${choice === "time" && unit.isTime ? timeWords(unit) : figureHead(choice, unit)}, `;
}

/** What a frame stands for, in a sentence that begins with its name. */
export function frameText(tree: Tree, node: number, focus: number, measure: WindowMeasure): string {
  const { diff } = tree;
  const { unit, sideNames } = measure;
  const name = titleOf(tree, node);
  const total = tree.total[node] as number;
  if (diff !== null) {
    const [a, b] = sideNames.names;
    const before = normText(diff.baseNorm[node] as number, 0, measure);
    const after = `${normText(diff.norm[node] as number, 1, measure)} ${normWords(measure)}`;
    const ofA = `${a} ${amountText(diff.baseTotal[node] as number, unit)}, ${before}`;
    const ofB = `${b} ${amountText(total, unit)}, ${after}`;
    return `${name}: ${ofA}; ${ofB}; ${changeWords(sideNames, changeOf(tree, node))}`;
  }
  const ofAll = percent(shareOf(total, measure.samples));
  const ofFocus = focus === ROOT ? "" : `, ${percent(shareOf(total, tree.total[focus] as number))} of the zoomed frame`;
  const choice = measure.choice === "" ? "cores" : measure.choice;
  const isBare = choice === undefined || choice === "samples" || choice === "share";
  const chosen = isBare ? "" : chosenText(total, choice, measure);
  return `${name}, ${kindWord(kindOf(kindName(tree, node), false))}: ${chosen}${amountText(total, unit)}, ${ofAll} of the total${ofFocus}`;
}
