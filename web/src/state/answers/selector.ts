/** What the server can't read of the selectors that the page asks by. */
import { computed } from "@preact/signals";
import type { ApiError } from "../../api/index.ts";
import { fields } from "../address/page.ts";
import { compareSeries, diff } from "./compare.ts";
import { exploreSeries, flamegraph, sampled } from "./explore.ts";
import { heatmap } from "./heatmap.ts";

/** Which selector the server can't read. Of a comparison, the chart is asked for side B alone. */
export const selectorFaults = computed<{ query: ApiError | null; base: ApiError | null }>(() => {
  const unread = (error: ApiError | null) => (error?.code === "bad_query" ? error : null);
  if (fields.view.value === "heatmap") return { query: unread(heatmap.error.value), base: null };
  if (fields.view.value === "timeline")
    return { query: unread(sampled.value?.timeline.error.value ?? null), base: null };
  if (fields.view.value !== "compare")
    return { query: unread(flamegraph.error.value) ?? unread(exploreSeries.error.value), base: null };
  const ofQuery = unread(compareSeries.error.value);
  return { query: ofQuery, base: ofQuery === null && !compareSeries.loading.value ? unread(diff.error.value) : null };
});
