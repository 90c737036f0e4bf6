/** What samples of a flamegraph stand for, and a frame's figures in a sentence. */
import type { Normalize } from "../../api/types.ts";
import { normText, normUnit } from "../../logic/compare/norm.ts";
import { changeWords, type SideNames } from "../../logic/compare/sideNames.ts";
import { percent } from "../../logic/text/format.ts";
import { amountText, type Unit } from "../../logic/text/unit.ts";
import { changeOf, frameName, kindName, ROOT, type Tree } from "../../logic/tree/tree.ts";

/** How samples become seconds and cores. */
export interface Measure {
  title: string;
  /** CPU seconds that one sample stands for. */
  secondsPerSample: number;
  /** Cores that one sample stands for, over the observed time. */
  coresPerSample: number;
  normalize: Normalize | null;
}

export interface WindowMeasure extends Measure {
  /** Samples of the window, whatever transforms leave of it. */
  samples: number;
  /** Of one window, or of side B in a comparison. */
  unit: Unit;
  /** Of a comparison. */
  sideNames: SideNames;
}

export const shareOf = (value: number, whole: number) => (whole > 0 ? value / whole : 0);

/** What a frame stands for, in a sentence that begins with its name. */
export function frameText(tree: Tree, node: number, focus: number, measure: WindowMeasure): string {
  const { diff } = tree;
  const { normalize, unit, sideNames } = measure;
  const name = frameName(tree, node);
  const total = tree.total[node] as number;
  if (diff !== null) {
    const [a, b] = sideNames.names;
    const before = normText(diff.baseNorm[node] as number, normalize, unit);
    const after = `${normText(diff.norm[node] as number, normalize, unit)} ${normUnit(normalize, unit)}`;
    const ofA = `${a} ${amountText(diff.baseTotal[node] as number, unit)}, ${before}`;
    const ofB = `${b} ${amountText(total, unit)}, ${after}`;
    return `${name}: ${ofA}; ${ofB}; ${changeWords(sideNames, changeOf(tree, node))}`;
  }
  const ofAll = percent(shareOf(total, measure.samples));
  const ofFocus = focus === ROOT ? "" : `, ${percent(shareOf(total, tree.total[focus] as number))} of the zoomed frame`;
  return `${name}, ${kindName(tree, node)}: ${amountText(total, unit)}, ${ofAll} of the total${ofFocus}`;
}
