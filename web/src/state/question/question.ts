/**
 * What every question to the server has in common. In: the address, and when something is asked anew. Out: the moment
 * that "now" stands for, the range and the selection of the page, and the limits that answers have.
 */
import { computed } from "@preact/signals";
import type { Parameters } from "../../api/index.ts";
import { isWait } from "../../logic/text/unit.ts";
import { type Window, windowOf } from "../../logic/time/windows.ts";
import { fields, refreshes } from "../address/page.ts";
import type { Ask } from "./resource.ts";

export const SERIES_LIMIT = 19;
export const TOP_LIMIT = 2_000;
/** Samples of a timeline. */
export const MOST_MOMENTS = 100_000;
/** The server folds frames below a millionth of the window, so that nothing is left out of a million samples. */
export const MIN_SHARE = 0.000001;
/** Where sums alone are wanted, all but the root is folded. */
export const ROOT_ONLY = 0.9999;

const { view, type, query, from, until, least, most, runtime_frames } = fields;
const NS_PER_MS = 1e6;

/** The present, as of the last question; moves when something is asked anew, so that windows hold still in between. */
export const present = computed(() => {
  void refreshes.value;
  void from.value;
  void until.value;
  void view.value;
  return Date.now();
});

export function ask<T>(name: string, parameters: Parameters, run: (signal: AbortSignal) => Promise<T>): Ask<T> {
  const timeless = Object.entries(parameters).filter(([key]) => !/(^|_)(from|until)$/.test(key));
  const [question, subject] = [parameters, timeless].map((of) => `${name} ${JSON.stringify(of)}`) as [string, string];
  return { name, question, subject, turn: refreshes.value, run };
}

/** Rows of labels above the stacks, as a flamegraph and a difference are asked for. */
export const grouped = (labels: readonly string[]): Parameters =>
  labels.length === 0 ? {} : { group: labels.join(",") };

/** Whether frames of runtimes stand by themselves, as every question about frames says it. */
export const ownFrames = computed<Parameters>(() =>
  runtime_frames.value === "" ? {} : { runtime_frames: runtime_frames.value },
);

/** How long waits are that count, whatever is asked of them. */
export const waitLengths = computed<Parameters>(() => ({
  ...(least.value === "" ? {} : { min_wait: Number(least.value) * NS_PER_MS }),
  ...(most.value === "" ? {} : { max_wait: Number(most.value) * NS_PER_MS }),
}));

/** The same where the page is of a type that tells of waits. */
export const lengths = computed<Parameters>(() => (isWait(type.value) ? waitLengths.value : {}));

/** What is selected, as the server is asked. */
export const selection = computed<Parameters>(() => ({
  type: type.value,
  query: query.value,
  from: from.value,
  until: until.value,
  ...lengths.value,
  ...ownFrames.value,
}));

/** The range of the page. */
export const range = computed<Window>(() => {
  return windowOf({ from: from.value, until: until.value }, present.value);
});
