/** At which rates a window was sampled. In: samples by what each stands for. Out: text for a person. */
import type { Period } from "../../api/types.ts";
import { digits, plural } from "../text/format.ts";

/** Periods that differ by less are told as one: `20.0 to 20.0 Hz` says nothing. */
const ALIKE = 1.01;

/**
 * Of a window whose samples stand for different times: `5 to 20 Hz` and how many were taken at which; null where all
 * are alike.
 */
export function ratesOf(periods: readonly Period[] | undefined): { brief: string; text: string } | null {
  const known = (periods ?? []).filter((period) => period.period_ns > 0);
  const lengths = known.map(({ period_ns }) => period_ns);
  if (known.length < 2 || Math.max(...lengths) <= ALIKE * Math.min(...lengths)) return null;
  const hertz = known.map(({ period_ns, samples }) => ({ rate: 1e9 / period_ns, samples }));
  hertz.sort((a, b) => b.rate - a.rate);
  const most = (hertz[0] as { rate: number }).rate;
  const least = (hertz[hertz.length - 1] as { rate: number }).rate;
  const parts = hertz.map(({ rate, samples }) => `${plural(samples, "sample")} at ${digits(rate)} Hz`);
  return {
    brief: `${digits(least)} to ${digits(most)} Hz`,
    text: `${parts.join(", ")}; each counts by the time that it stands for, in samples of the highest rate`,
  };
}
