/** The lists of what takes most, all in one answer, and the kernel's part of the chart's layers. */
import { computed } from "@preact/signals";
import { api, type SeriesAnswer } from "../../api/index.ts";
import { andMatcher, anyOf } from "../../logic/labels/selector.ts";
import { listStep } from "../../logic/series/spark.ts";
import { stackOf } from "../../logic/series/stack.ts";
import { isWait } from "../../logic/text/unit.ts";
import { lengthOf } from "../../logic/time/windows.ts";
import { page } from "../address/page.ts";
import { ask, range, selection } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { exploreSeries } from "./explore.ts";
import { type Facets, facetsBy } from "./facets.ts";

export const LISTED = ["node", "service", "container", "process", "thread"] as const;
export type Listed = (typeof LISTED)[number];
/** Values of a list. */
const LIST_LENGTH = 5;

const shown = computed(() => page.value.view === "explore" && page.value.lists && page.value.tab === "lists");

/** All in one answer. */
export const lists: Resource<Facets> = resource(() => {
  if (!shown.value) return null;
  const step = listStep(lengthOf(range.value));
  const parameters = { ...selection.value, parts: "series", limit: LIST_LENGTH, step };
  return ask("lists", parameters, (signal) => facetsBy(LISTED, parameters, signal));
});

/** The time that the kernel spent for the values of the chart, over the very steps of the chart. */
export const kernelSeries: Resource<SeriesAnswer> = resource(() => {
  const { view, apart, type, query, by } = page.value;
  const whole = exploreSeries.data.value;
  if (
    view !== "explore" ||
    !apart ||
    isWait(type) ||
    whole === null ||
    whole.by !== by ||
    by === "mode" ||
    whole.series.length === 0
  )
    return null;
  const selector = andMatcher(
    query,
    { label: by, operator: "=~", value: anyOf(whole.series.map((line) => line.value)) },
    { label: "mode", operator: "=", value: "kernel" },
  );
  if (selector === null) return null;
  const { from, until } = whole;
  const parameters = { type, query: selector, from, until, by, limit: whole.series.length, step: `${whole.step_ms}ms` };
  return ask("kernel", parameters, (signal) => api.series(parameters, signal));
});

export const exploreStack = computed(() => {
  const whole = exploreSeries.data.value;
  if (whole === null) return null;
  // What the kernel spent for the values of another label stays until the new answer is there; by mode none is asked
  // for.
  const kernel = kernelSeries.data.value;
  return stackOf(whole, page.value.apart && kernel?.by === whole.by ? kernel : null);
});
