/** One window: its chart, its profile and the values that took most of it. */
import { computed } from "@preact/signals";
import { api, type Parameters } from "../../api/index.ts";
import type { ParsedFlamegraph } from "../../logic/tree/answer.ts";
import { fields } from "../address/page.ts";
import { parse } from "../question/parsing.ts";
import { ask, MIN_SHARE, SERIES_LIMIT, selection, TOP_LIMIT } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { comparing } from "./compare.ts";
import { heatmapWindow, marks } from "./heatmap.ts";

const { view, by, rank } = fields;

export const exploreSeries: Resource<Awaited<ReturnType<typeof api.series>>> = resource(() => {
  if (view.value !== "explore") return null;
  const parameters = { ...selection.value, by: by.value, limit: SERIES_LIMIT };
  return ask("series", parameters, (signal) => api.series(parameters, signal));
});

/** The one window whose profile is shown; null where two are compared, or none is. */
export const single = computed<Parameters | null>(() => {
  if (view.value === "explore") return selection.value;
  if (view.value !== "heatmap" || comparing.value) return null;
  const marked = marks.value.a ?? marks.value.b ?? { window: heatmapWindow.value };
  return { ...selection.value, ...marked.window };
});

export const flamegraph: Resource<ParsedFlamegraph> = resource(() => {
  if (single.value === null) return null;
  const parameters = { ...single.value, min_share: MIN_SHARE };
  return ask("flamegraph", parameters, async (signal) =>
    parse("flamegraph", await api.flamegraph(parameters, signal), signal),
  );
});

/** Values of a label by CPU time, where the table shows them instead of functions. */
export const ranking = resource(() => {
  if (single.value === null || rank.value === "function") return null;
  const parameters = { ...single.value, by: rank.value, limit: TOP_LIMIT };
  return ask("ranking", parameters, (signal) => api.ranking(parameters, signal));
});
