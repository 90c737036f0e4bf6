/** The cells of the heatmap, and what is marked in it. */
import { computed } from "@preact/signals";
import { api, type HeatmapAnswer } from "../../api/index.ts";
import { aligned, columnMs, parseMark, ROWS, sideOf } from "../../logic/heatmap/marks.ts";
import { fields } from "../address/page.ts";
import { ask, lengths, range } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";

const { view, type, query, markA, markB, column } = fields;

/** What the heatmap shows: whole columns. */
const heatmapStep = computed(() => columnMs(range.value, column.value));
export const heatmapWindow = computed(() => aligned(range.value, heatmapStep.value));

export const heatmap: Resource<HeatmapAnswer> = resource(() => {
  if (view.value !== "heatmap") return null;
  const step = `${heatmapStep.value}ms`;
  const parameters = {
    type: type.value,
    query: query.value,
    ...heatmapWindow.value,
    step,
    rows: ROWS,
    ...lengths.value,
  };
  return ask("heatmap", parameters, (signal) => api.heatmap(parameters, signal));
});

/** What is marked in the heatmap. */
export const marks = computed(() => {
  const [a, b] = [parseMark(markA.value), parseMark(markB.value)];
  const whole = heatmapWindow.value;
  return { a: sideOf(a, b, whole), b: sideOf(b, a, whole) };
});
