/**
 * What a key means on a timeline. In: the key, and what is in sight, selected and found. Out: a command, or null for a
 * key that means nothing there. It knows no element and changes nothing.
 */
import { neighbour, type Step } from "../../logic/flame/layout.ts";
import type { Search } from "../../logic/flame/search.ts";
import { type Chart, fitted, hitBeside, panned, type Range, sampleFrom, zoomed } from "../../logic/flame/timeline.ts";
import { ROOT } from "../../logic/tree/tree.ts";

export interface KeyScene {
  chart: Chart;
  range: Range;
  selected: number | null;
  search: Search | null;
  /** Samples that have what is looked for. */
  found: readonly number[];
}

export type KeyCommand =
  | { does: "show"; range: Range }
  | { does: "select"; box: number }
  /** Nothing is selected, and all is in sight. */
  | { does: "reset" }
  /** The key has its meaning, but there is nothing to do. */
  | { does: "nothing" };

type Key = Pick<KeyboardEvent, "key" | "shiftKey" | "ctrlKey" | "metaKey" | "altKey">;

const STEPS: Record<string, Step> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
  Home: "first",
  End: "last",
};

export function commandOf({ key, shiftKey, ctrlKey, metaKey, altKey }: Key, scene: KeyScene): KeyCommand | null {
  if (ctrlKey || metaKey || altKey) return null;
  const { chart, range, selected } = scene;
  const { tree, extentNs } = chart;
  const span = range.until - range.from;
  const first = chart.boxOf[Math.min(sampleFrom(chart.samples, range.from), chart.boxOf.length - 1)];
  if (shiftKey && key === "ArrowLeft") return { does: "show", range: panned(range, -span / 4, extentNs) };
  if (shiftKey && key === "ArrowRight") return { does: "show", range: panned(range, span / 4, extentNs) };
  const step = STEPS[key];
  if (step !== undefined && first !== undefined)
    return { does: "select", box: selected === null ? first : neighbour(tree, selected, step, ROOT) };
  if (key === "+" || key === "=") return { does: "show", range: zoomed(range, 0.5, 0.5, extentNs) };
  if (key === "-") return { does: "show", range: zoomed(range, 2, 0.5, extentNs) };
  if (key === "Enter" && selected !== null) return { does: "show", range: fitted(chart, selected) };
  if (key === "n" || key === "N") {
    const { search, found } = scene;
    const here = selected === null ? range.from : (tree.start[selected] as number);
    const box = search === null ? null : hitBeside(chart, search, found, here, key === "n" ? 1 : -1);
    return box === null ? { does: "nothing" } : { does: "select", box };
  }
  return key === "Escape" || key === "0" ? { does: "reset" } : null;
}
