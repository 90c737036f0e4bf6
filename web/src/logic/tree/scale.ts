/**
 * What frames that a transform puts together are judged by, read from what the server said of all frames. What is
 * judged of a frame, all its samples or its own, is what the server was asked to compare. The test itself is made
 * where trees are changed.
 */
import type { DiffAnswer } from "../../api/types.ts";

/** Standard errors of an interval, by its confidence. */
const ERRORS: Record<string, number> = { "0.8": 1.2816, "0.9": 1.6449, "0.95": 1.96, "0.99": 2.5758, "0.999": 3.2905 };
const USUAL = 1.96;

export interface Scale {
  /** Samples of side A and B that one unit of the normalisation stands for; 0 where that is not known. */
  exposures: readonly [before: number, after: number];
  /** Variance of a count in units of a Poisson's. */
  dispersion: number;
  /** Standard errors of an interval. */
  errors: number;
  /** Deviation of the server's weakest discovery, in standard errors; infinite where it made none. */
  least: number;
}

interface Judged {
  baseTotal: ArrayLike<number>;
  total: ArrayLike<number>;
  baseSelf: ArrayLike<number>;
  self: ArrayLike<number>;
  baseNorm: ArrayLike<number>;
  norm: ArrayLike<number>;
  state: ArrayLike<number>;
}

export function scaleOf(
  nodes: Judged,
  { states, dispersion, confidence, measure }: Pick<DiffAnswer, "states" | "dispersion" | "confidence" | "measure">,
): Scale {
  const exposure = (counts: ArrayLike<number>, norms: ArrayLike<number>) =>
    (norms[0] as number) > 0 ? (counts[0] as number) / (norms[0] as number) : 0;
  const scale = {
    exposures: [exposure(nodes.baseTotal, nodes.baseNorm), exposure(nodes.total, nodes.norm)] as const,
    dispersion: Math.max(1, dispersion),
    errors: ERRORS[String(confidence)] ?? USUAL,
  };
  const [before, after] = measure === "self" ? [nodes.baseSelf, nodes.self] : [nodes.baseTotal, nodes.total];
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < nodes.state.length; i++) {
    if (states[nodes.state[i] as number] === "same") continue;
    least = Math.min(least, deviation(before[i] as number, after[i] as number, scale));
  }
  return { ...scale, least: Math.max(scale.errors, least) };
}

/** How far b of a + b samples lie from what no change makes one expect, in standard errors. */
export function deviation(
  a: number,
  b: number,
  { exposures, dispersion }: Pick<Scale, "exposures" | "dispersion">,
): number {
  const [before, after] = exposures;
  if (a + b <= 0 || before <= 0 || after <= 0) return 0;
  const p = after / (before + after);
  return Math.abs(b - (a + b) * p) / Math.sqrt((a + b) * p * (1 - p) * dispersion);
}
