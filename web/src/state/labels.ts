/** The values of labels, for completion. Kept for a minute, at most 32 lists. */
import { api } from "../api/index.ts";
import { page } from "./index.ts";

const KEPT_MS = 60_000;
const MOST_LISTS = 32;
const lists = new Map<string, { at: number; values: string[] }>();

/** The values that occur in the range of the page; an empty list where the server can't say. */
export async function labelValues(label: string, signal: AbortSignal): Promise<string[]> {
  const { type, from, until } = page.peek();
  const key = JSON.stringify([label, type, from, until]);
  const known = lists.get(key);
  if (known !== undefined && Date.now() - known.at < KEPT_MS) return known.values;
  try {
    const { values } = await api.labelValues(label, { type, from, until }, signal);
    if (lists.size >= MOST_LISTS) lists.delete(lists.keys().next().value as string);
    lists.set(key, { at: Date.now(), values });
    return values;
  } catch {
    return [];
  }
}
