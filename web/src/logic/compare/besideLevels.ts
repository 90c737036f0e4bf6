/**
 * How wide the graphs of both sides are where they stand side by side. In: the tree of a difference, the zoomed frame,
 * and the cores of each side where there are cores. Out: what the frame takes on each side, and the part of the room
 * that each graph fills, so that equal widths are equal amounts on both.
 */
import type { Tree } from "../tree/tree.ts";

export interface Levels {
  /** Of side A and B. */
  levels: readonly [number, number];
  /** Parts of the room; the larger side has all of it. */
  widths: readonly [number, number];
  /** The levels are cores. */
  isCores: boolean;
}

/** Samples of both sides, whatever transforms leave of them. */
type Wholes = readonly [before: number, after: number];

export function besideLevels(
  { diff, total }: Pick<Tree, "diff" | "total">,
  node: number,
  sideCores: readonly [number, number] | null,
  wholes: Wholes,
): Levels {
  const samples = [diff?.baseTotal[node] ?? 0, total[node] ?? 0] as const;
  const norms = [diff?.baseNorm[node] ?? 0, diff?.norm[node] ?? 0] as const;
  const level = (at: 0 | 1) => {
    if (sideCores === null) return norms[at];
    return wholes[at] > 0 ? (samples[at] / wholes[at]) * sideCores[at] : 0;
  };
  const levels = [level(0), level(1)] as const;
  const most = Math.max(...levels);
  const width = (at: 0 | 1) => (most > 0 ? levels[at] / most : 0);
  return { levels, widths: [width(0), width(1)], isCores: sideCores !== null };
}
