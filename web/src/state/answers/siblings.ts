/**
 * The values of a label within a selection, the largest first, all or those that hold a word: what a step of the
 * selection can be instead.
 */
import { signal } from "@preact/signals";
import { api } from "../../api/index.ts";
import { holding } from "../../logic/labels/searching.ts";
import { andMatcher } from "../../logic/labels/selector.ts";
import { page } from "../address/page.ts";
import { ask, lengths } from "../question/question.ts";
import { resource } from "../question/resource.ts";
import { namesFor } from "./names.ts";

/** What somebody looks at. Without a word it is all values. */
export const wantedSiblings = signal<{ label: string; query: string; word: string } | null>(null);

export const MOST_SIBLINGS = 30;

export const siblings = resource(() => {
  const wanted = wantedSiblings.value;
  if (wanted === null) return null;
  const { type, from, until } = page.value;
  const { label, word } = wanted;
  const query =
    word === ""
      ? wanted.query
      : andMatcher(wanted.query, { label, operator: "=~", value: holding(word, namesFor(label)) });
  if (query === null) return null;
  const parameters = {
    type,
    from,
    until,
    query,
    by: label,
    limit: MOST_SIBLINGS,
    ...lengths.value,
  };
  return ask("values", parameters, async (signal) => ({ wanted, answer: await api.ranking(parameters, signal) }));
});

export function startSiblings(): void {
  siblings.start();
}
