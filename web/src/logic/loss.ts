/** What agents lost. In: samples by cause. Out: their sum, and both as text. */
import { brief, count } from "./format.ts";

export interface Loss {
  samples: number;
  /** `ring_full 12.3 k`, with and without all digits; empty where nothing was lost. */
  brief: string;
  text: string;
}

export function lossOf(byCause: Record<string, number> | undefined): Loss {
  const lost = Object.entries(byCause ?? {}).filter(([, samples]) => samples > 0);
  return {
    samples: lost.reduce((sum, [, samples]) => sum + samples, 0),
    brief: lost.map(([cause, samples]) => `${cause} ${brief(samples)}`).join(", "),
    text: lost.map(([cause, samples]) => `${cause}: ${count(samples)}`).join(", "),
  };
}
