/** The samples of the timeline as they are drawn. */
import { computed } from "@preact/signals";
import { type Chart, chartOf } from "../logic/timeline.ts";
import { BadTree } from "../logic/tree.ts";
import { timeline } from "./data.ts";

/** The samples as a flame chart, or what is wrong with them. */
export const chart = computed<{ chart: Chart | null; fault: string }>(() => {
  const answer = timeline.data.value;
  try {
    return { chart: answer === null ? null : chartOf(answer), fault: "" };
  } catch (error) {
    if (error instanceof BadTree) return { chart: null, fault: error.message };
    throw error;
  }
});
