/** The values of labels, for completion. Asked for once, however many letters are typed meanwhile; kept for a minute, at most 32 lists. */
import { api } from "../api/index.ts";
import { page } from "./index.ts";

const KEPT_MS = 60_000;
const MOST_LISTS = 32;
const lists = new Map<string, { at: number; values: Promise<string[]> }>();

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
