/** The values of a label within a selection, the largest first: what a step of the selection can be instead. */
import { signal } from "@preact/signals";
import { api } from "../../api/index.ts";
import { page } from "../address/page.ts";
import { ask, lengths } from "../question/question.ts";
import { resource } from "../question/resource.ts";

/** What somebody looks at. */
export const wantedSiblings = signal<{ label: string; query: string } | null>(null);

export const MOST_SIBLINGS = 30;

export const siblings = resource(() => {
  const wanted = wantedSiblings.value;
  if (wanted === null) return null;
  const { type, from, until } = page.value;
  const parameters = {
    type,
    from,
    until,
    query: wanted.query,
    by: wanted.label,
    limit: MOST_SIBLINGS,
    ...lengths.value,
  };
  return ask("values", parameters, async (signal) => ({ wanted, answer: await api.ranking(parameters, signal) }));
});

export function startSiblings(): void {
  siblings.start();
}
