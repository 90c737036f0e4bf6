/**
 * What the boxes for selectors need: the values of labels, for completion, and what the server can't read. Values are
 * asked for once, however many letters are typed meanwhile, unless there are more than the server lists at once; kept
 * for a minute, at most 32 lists.
 */
import { computed } from "@preact/signals";
import { ApiError, api } from "../../api/index.ts";
import type { LabelMatcher } from "../../logic/labels/selector.ts";
import { fields, page } from "../address/page.ts";
import { compareSeries, diff } from "./compare.ts";
import { exploreSeries, flamegraph } from "./explore.ts";
import { heatmap } from "./heatmap.ts";
import { timeline } from "./timeline.ts";

const KEPT_MS = 60_000;
const MOST_LISTS = 32;
const lists = new Map<string, { at: number; values: Promise<Values> }>();

interface Values {
  values: string[];
  complete: boolean;
}

type Completing = typeof import("../../logic/labels/completing.ts");
let asked: Promise<Completing | null> | null = null;

/** What completes selectors, fetched once somebody comes to a box for them; null where it can't be had now. */
export function completing(): Promise<Completing | null> {
  asked ??= import("../../logic/labels/completing.ts").catch(() => {
    asked = null;
    return null;
  });
  return asked;
}

/** Values and functions of others are further from a word than these. */
const MOST_HITS = 1_000;

/** What a word may mean. */
export interface Meant {
  values: LabelMatcher[];
  /** Names of functions that were sampled in the days of the range, whatever is selected. */
  functions: string[];
}

/** Nothing where the server can't say. Whoever types on ends the question. */
export async function meantBy(word: string, most: number, signal: AbortSignal): Promise<Meant> {
  const { type, from, until } = page.peek();
  const parameters = { type, from, until, search: word, limit: MOST_HITS };
  const [file, { hits }] = await Promise.all([
    completing(),
    api.search(parameters, signal).catch(() => ({ hits: [] })),
  ]);
  return { values: file?.meanings(word, hits, most) ?? [], functions: file?.functionsAmong(hits) ?? [] };
}

/**
 * A second in which nothing was sampled: a question about it costs nothing, and is refused where its selector can't
 * be read.
 */
const NO_TIME = { from: 1_000, until: 2_000, by: "node", limit: 1 };

/** What the server says against a selector; null where it reads it, or where it does not answer. */
export async function refusalOf(query: string, signal: AbortSignal): Promise<ApiError | null> {
  try {
    await api.ranking({ ...NO_TIME, query }, signal);
  } catch (error) {
    if (error instanceof ApiError && error.code === "bad_query") return error;
  }
  return null;
}

/** The values that have a word and occur in the range of the page; none where the server can't say. */
function valuesWith(label: string, search: string): Promise<Values> {
  const { type, from, until } = page.peek();
  const key = JSON.stringify([label, type, from, until, search]);
  const known = lists.get(key);
  if (known !== undefined && Date.now() - known.at < KEPT_MS) return known.values;
  if (lists.size >= MOST_LISTS) lists.delete(lists.keys().next().value as string);
  const values = api.labelValues(label, { type, from, until, search }).catch(() => {
    lists.delete(key);
    return { values: [], complete: true };
  });
  lists.set(key, { at: Date.now(), values });
  return values;
}

/** Values for a word. The server looks for it where it has more of them than it lists. */
export async function labelValues(label: string, word: string): Promise<string[]> {
  const all = await valuesWith(label, "");
  return (word === "" || all.complete ? all : await valuesWith(label, word)).values;
}

/** Which selector the server can't read. Of a comparison, the chart is asked for side B alone. */
export const selectorFaults = computed<{ query: ApiError | null; base: ApiError | null }>(() => {
  const unread = (error: ApiError | null) => (error?.code === "bad_query" ? error : null);
  if (fields.view.value === "heatmap") return { query: unread(heatmap.error.value), base: null };
  if (fields.view.value === "timeline") return { query: unread(timeline.error.value), base: null };
  if (fields.view.value !== "compare")
    return { query: unread(flamegraph.error.value) ?? unread(exploreSeries.error.value), base: null };
  const ofQuery = unread(compareSeries.error.value);
  return { query: ofQuery, base: ofQuery === null && !compareSeries.loading.value ? unread(diff.error.value) : null };
});
