/** One window: its chart, its profile and the values that took most of it. */
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { ApiError, api, type FlamegraphAnswer, type Parameters, type TimelineAnswer } from "../../api/index.ts";
import type { ParsedFlamegraph } from "../../logic/tree/answer.ts";
import { fields, rows } from "../address/page.ts";
import { parse } from "../question/parsing.ts";
import { ask, grouped, MIN_SHARE, SERIES_LIMIT, selection, TOP_LIMIT } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { comparing } from "./compare.ts";
import { heatmapWindow, marks } from "./heatmap.ts";

const { view, by, rank } = fields;

export const exploreSeries: Resource<Awaited<ReturnType<typeof api.series>>> = resource(() => {
  if (view.value !== "explore") return null;
  const parameters = { ...selection.value, by: by.value, limit: SERIES_LIMIT };
  return ask("series", parameters, (signal) => api.series(parameters, signal));
});

/** An answer about one window without its frames. */
export type WindowSums = Omit<FlamegraphAnswer, "strings" | "kinds" | "languages" | "nodes">;

/** What the timeline brings once its part of the page is there: until then it asks nothing. */
export interface Sampled {
  timeline: Resource<TimelineAnswer>;
  /** What ran before the frames that are looked for. */
  beforeHits: Resource<ParsedFlamegraph>;
  /** Which answer says how good its data is. */
  sums: ReadonlySignal<Resource<WindowSums> | null>;
}

export const sampled = signal<Sampled | null>(null);

/** Which answer says how good the data of threads' time is, once that part of the page is there. */
export const threadSums = signal<Resource<WindowSums> | null>(null);

/** The one window whose profile is shown; null where two are compared, or none is. */
export const single = computed<Parameters | null>(() => {
  if (view.value === "explore") return selection.value;
  if (view.value !== "heatmap" || comparing.value) return null;
  const marked = marks.value.a ?? marks.value.b ?? { window: heatmapWindow.value };
  return { ...selection.value, ...marked.window };
});

export const flamegraph: Resource<ParsedFlamegraph> = resource(() => {
  if (single.value === null) return null;
  const { labels, isOwn } = rows.value;
  const bare = { ...single.value, min_share: MIN_SHARE };
  const parameters = { ...bare, ...grouped(labels) };
  return ask("flamegraph", parameters, async (signal) => {
    const asked = isOwn ? api.flamegraph(parameters, signal).catch(withoutRows(bare, signal)) : null;
    return parse("flamegraph", await (asked ?? api.flamegraph(parameters, signal)), signal, isOwn);
  });
});

/** Which answer says how good the data of the one window is that is looked at; null where none does. */
export const observed = computed<Resource<WindowSums> | null>(() => {
  if (view.value === "threads") return threadSums.value;
  return sampled.value?.sums.value ?? (single.value === null ? null : flamegraph);
});

/** Rows that nobody asked for are no reason to show nothing: pairs of rows and stacks have limits of their own. */
function withoutRows(bare: Parameters, signal: AbortSignal) {
  return (error: unknown) => {
    if (error instanceof ApiError && ["too_large", "bad_parameter", "timeout"].includes(error.code))
      return api.flamegraph(bare, signal);
    throw error;
  };
}

/** Values of a label by CPU time, where the table shows them instead of functions. */
export const ranking = resource(() => {
  if (single.value === null || rank.value === "function") return null;
  const parameters = { ...single.value, by: rank.value, limit: TOP_LIMIT };
  return ask("ranking", parameters, (signal) => api.ranking(parameters, signal));
});
