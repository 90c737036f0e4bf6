/**
 * What is meant by what somebody types into a box for selectors: values of labels, for completion, words among values
 * and functions, and what the server can't read. Fetched once somebody comes to such a box. Values are asked for once,
 * however many letters are typed meanwhile, unless there are more than the server lists at once; kept for a minute, at
 * most 32 lists.
 */
import { ApiError, api } from "../../api/index.ts";
import { exactPattern } from "../../logic/flame/search.ts";
import { functionsLike } from "../../logic/graph/functionsLike.ts";
import { functionsAmong, meanings } from "../../logic/labels/completing.ts";
import type { LabelMatcher } from "../../logic/labels/selector.ts";
import { navigate, page } from "../address/page.ts";
import { upright } from "./tree.ts";

export { complete, completingAt, suggestions } from "../../logic/labels/completing.ts";

const KEPT_MS = 60_000;
const MOST_LISTS = 32;
const lists = new Map<string, { at: number; values: Promise<Values> }>();

interface Values {
  values: string[];
  complete: boolean;
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
  const { hits } = await api.search(parameters, signal).catch(() => ({ hits: [] }));
  return { values: meanings(word, hits, most), functions: functionsAmong(hits) };
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

export interface NamedFunction {
  name: string;
  /** There is a graph, and it lacks the function: it ran elsewhere, or at another time. */
  isElsewhere: boolean;
}

/** `found`: functions that hold the word, as the server has them. Of the graph's and of the others at most so many. */
export function functionsNamed(word: string, found: readonly string[], most: number): NamedFunction[] {
  const tree = upright.peek();
  const here = tree === null ? [] : functionsLike(tree, word, Number.POSITIVE_INFINITY);
  const known = new Set(here);
  const others = found.filter((name) => !known.has(name));
  const isElsewhere = tree !== null;
  return [
    ...here.slice(0, most).map((name) => ({ name, isElsewhere: false })),
    ...others.slice(0, most).map((name) => ({ name, isElsewhere })),
  ];
}

/** Looks for exactly this function: it is marked in the graph, and its share is told, or that there is none. */
export function findFunction(name: string): void {
  navigate({ match: exactPattern(name) });
}
