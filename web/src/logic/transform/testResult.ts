/**
 * The test result of frames that a transform has put together, of which the server knows nothing. In: what the server
 * said of all frames. The interval is the server's (`server/src/query/difference/judge.rs`: score intervals of both
 * sides' Poisson means, over-dispersed, combined after Zou and Donner); a frame is called changed where it deviates
 * at least as far as the weakest of the server's own discoveries. A frame that has the samples of one of the server's
 * keeps the server's.
 */
import { deviation, type Scale } from "../tree/scale.ts";

/** A colour's strength of a discovery is never less: it has to be told from grey. */
const LEAST_STRENGTH = 0.05;

export interface TestResult {
  low: number;
  high: number;
  state: string;
  strength: number;
}

export function testResultOf(a: number, b: number, scale: Scale): TestResult {
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
