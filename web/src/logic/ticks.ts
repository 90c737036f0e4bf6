/** Where axes have labels. In: the range of an axis and how many labels there is room for. Out: round values within the range. */

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
] as const;
const WEEK_MS = 604_800_000;

/** Round times (Unix milliseconds) of the browser's zone, at most so many. */
export function timeTicks(from: number, until: number, most: number): { ticks: number[]; stepMs: number } {
  const fits = (step: number) => (until - from) / step <= most;
  const stepMs = STEPS_MS.find(fits) ?? Math.max(1, Math.ceil((until - from) / WEEK_MS / most)) * WEEK_MS;
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  const ticks: number[] = [];
  for (let tick = Math.ceil((from - zone) / stepMs) * stepMs + zone; tick <= until; tick += stepMs) ticks.push(tick);
  return { ticks, stepMs };
}

/** Round levels from zero up to `top`: at most so many above zero. */
export function levelTicks(top: number, most: number): number[] {
  const least = top / Math.max(1, most);
  const magnitude = 10 ** Math.floor(Math.log10(least));
  // What is one by a hair must not become two.
  const step = ([1, 2, 5, 10].find((times) => times * magnitude >= least * (1 - 1e-9)) ?? 10) * magnitude;
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}
