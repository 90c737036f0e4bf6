/**
 * What differs by the values of labels, as the server judged it: between the two sides of a comparison, and between
 * the window that is looked at and an earlier one.
 */
import { computed } from "@preact/signals";
import { api, type DiffTopRow, type TopAnswer } from "../../api/index.ts";
import { measureFor } from "../../logic/table/measured.ts";
import { lengthOf, shift } from "../../logic/time/windows.ts";
import { fields } from "../address/page.ts";
import { ask, lengths, ownFrames, range, TOP_LIMIT } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { byLabels, comparing, isPaired, LABEL_ORDER, pairParameters } from "./compare.ts";
import { facetsBy } from "./facets.ts";

export type Judged = Resource<TopAnswer<DiffTopRow>>;

/** Labels by which both sides are always told apart. */
const ALWAYS = ["service", "node", "process", "thread"];
const SOMETIMES = ["pod", "unit", "container", "version"];

const { tab, type, query, from, until, rank, against, view } = fields;

/** Of labels that only some machines have: those that anything in the range has. */
const found = resource(() => {
  if (!comparing.value) return null;
  const parameters = { type: type.value, query: query.value, from: from.value, until: until.value, ...lengths.value };
  return ask("labels", parameters, async (signal) => {
    // Two values: the larger one may be that of samples without the label.
    const facets = await facetsBy(SOMETIMES, { ...parameters, parts: "top", limit: 2 }, signal);
    return SOMETIMES.filter((label) => facets[label]?.top?.rows.some(({ name }) => name !== ""));
  });
});

/** Labels that nothing in the range has, as far as that is known. */
const absentLabels = computed(() => {
  const some = found.data.value;
  return some === null ? [] : SOMETIMES.filter((label) => !some.includes(label));
});

export const presentLabels = computed(() => {
  const some = found.data.value ?? [];
  return LABEL_ORDER.filter((label) => ALWAYS.includes(label) || some.includes(label));
});

function judgedBy(by: () => string | null, more: () => Record<string, string> = () => ({})): Judged {
  return resource(() => {
    const label = by();
    if (label === null || !comparing.value || !isPaired.value) return null;
    const parameters = { ...pairParameters(), by: label, limit: TOP_LIMIT, ...more() };
    return ask(`by ${label}`, parameters, (signal) => api.diffTop(parameters, signal));
  });
}

/** Both sides by the label whose tab is open. */
export const labelDiff = judgedBy(() => (LABEL_ORDER.includes(tab.value) ? tab.value : null));

/** By thread, whatever is open: the verdict names the threads that changed. */
export const threadDiff = judgedBy(() => "thread");

/** Functions by what they take themselves: callers, which change because of what they call, are not among them. */
export const selfDiff = judgedBy(
  () => (tab.value === "" || tab.value === "causes" ? "function" : null),
  () => ({ measure: "self" }),
);

const AGO_MS = { day: 86_400_000, week: 7 * 86_400_000 };

/** The window that "changed most" compares with. */
export const earlierWindow = computed(() => {
  const window = range.value;
  const { value } = against;
  return shift(window, -(value === "" ? lengthOf(window) : AGO_MS[value]));
});

/** What changed most since then, by function or by the label that the table ranks. */
export const changedMost: Judged = resource(() => {
  if (view.value !== "explore" || tab.value !== "changed") return null;
  const window = range.value;
  const base = earlierWindow.value;
  const parameters = {
    type: type.value,
    query: query.value,
    from: window.from,
    until: window.until,
    base_from: base.from,
    base_until: base.until,
    ...lengths.value,
    ...ownFrames.value,
    by: rank.value,
    limit: TOP_LIMIT,
    measure: measureFor(rank.value, ""),
  };
  return ask("changed most", parameters, (signal) => api.diffTop(parameters, signal));
});

export function startJudged(): void {
  for (const answer of [found, labelDiff, threadDiff, selfDiff, changedMost]) answer.start();
  byLabels.value = { absentLabels, changedMost };
}
