/** The values of labels, for completion. Asked for once, however many letters are typed meanwhile; kept for a minute, at most 32 lists. */
import { ApiError, api } from "../api/index.ts";
import { page } from "./index.ts";

const KEPT_MS = 60_000;
const MOST_LISTS = 32;
const lists = new Map<string, { at: number; values: Promise<string[]> }>();

/** Values that a word may mean, of the labels in this order. */
export async function valuesOf(names: readonly string[]): Promise<{ label: string; values: string[] }[]> {
  return Promise.all(names.map(async (label) => ({ label, values: await labelValues(label) })));
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

/** The values that occur in the range of the page; an empty list where the server can't say. */
export function labelValues(label: string): Promise<string[]> {
  const { type, from, until } = page.peek();
  const key = JSON.stringify([label, type, from, until]);
  const known = lists.get(key);
  if (known !== undefined && Date.now() - known.at < KEPT_MS) return known.values;
  if (lists.size >= MOST_LISTS) lists.delete(lists.keys().next().value as string);
  const values = api.labelValues(label, { type, from, until }).then(
    (answer) => answer.values,
    () => {
      lists.delete(key);
      return [];
    },
  );
  lists.set(key, { at: Date.now(), values });
  return values;
}
