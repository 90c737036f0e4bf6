/**
 * The verdict on frames that a transform has put together, of which the server knows nothing. In: what the server
 * said of all frames. The interval is the server's (`server/src/query/difference/judge.rs`: score intervals of both
 * sides' Poisson means, over-dispersed, combined after Zou and Donner); a frame is called changed where it deviates
 * at least as far as the weakest of the server's own discoveries. A frame that has the samples of one of the server's
 * keeps the server's verdict. What is judged of a frame, all its samples or its own, is what the server was asked to
 * compare.
 */
import type { DiffAnswer } from "../../api/types.ts";

/** Standard errors of an interval, by its confidence. */
const ERRORS: Record<string, number> = { "0.8": 1.2816, "0.9": 1.6449, "0.95": 1.96, "0.99": 2.5758, "0.999": 3.2905 };
const USUAL = 1.96;
/** A colour's strength of a discovery is never less: it has to be told from grey. */
const LEAST_STRENGTH = 0.05;

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

export interface Verdict {
  low: number;
  high: number;
  state: string;
  strength: number;
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
function deviation(a: number, b: number, { exposures, dispersion }: Pick<Scale, "exposures" | "dispersion">): number {
  const [before, after] = exposures;
  if (a + b <= 0 || before <= 0 || after <= 0) return 0;
  const p = after / (before + after);
  return Math.abs(b - (a + b) * p) / Math.sqrt((a + b) * p * (1 - p) * dispersion);
}

export function judge(a: number, b: number, scale: Scale): Verdict {
  const z = scale.errors;
  const side = (count: number, exposure: number): [value: number, low: number, high: number] => {
    if (exposure <= 0) return [0, 0, 0];
    const unit = scale.dispersion / exposure;
    const middle = count / scale.dispersion + (z * z) / 2;
    const half = z * Math.sqrt(count / scale.dispersion + (z * z) / 4);
    return [count / exposure, Math.max(0, middle - half) * unit, (middle + half) * unit];
  };
  const [before, beforeLow, beforeHigh] = side(a, scale.exposures[0]);
  const [after, afterLow, afterHigh] = side(b, scale.exposures[1]);
  const delta = after - before;
  const low = delta - Math.hypot(after - afterLow, beforeHigh - before);
  const high = delta + Math.hypot(afterHigh - after, before - beforeLow);
  const nearest = low > 0 ? low : high < 0 ? -high : 0;
  if (nearest === 0 || deviation(a, b, scale) < scale.least) return { low, high, state: "same", strength: 0 };
  const state = delta > 0 ? (a === 0 ? "new" : "grew") : b === 0 ? "gone" : "shrank";
  return { low, high, state, strength: Math.min(1, Math.max(LEAST_STRENGTH, nearest / Math.max(before, after))) };
}
