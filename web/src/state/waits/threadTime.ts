/** Where threads' time goes: by a label, and the course of the row that was chosen. */
import { computed } from "@preact/signals";
import { api, type ThreadTimeAnswer } from "../../api/index.ts";
import { threadTimeOf } from "../../logic/waits/threadTime.ts";
import { fields } from "../address/page.ts";
import { threadSums, type WindowSums } from "../answers/explore.ts";
import { ask, ROOT_ONLY, waitLengths } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { chosenRow, rowQuery } from "./row.ts";
import { rowQueue, runQueue } from "./runQueue.ts";

/** Rows of the table; the server says how many more there are. */
export const MOST_ROWS = 1_000;

const { view, query, from, until, by } = fields;

const isShown = computed(() => view.value === "threads");

export const threadTime: Resource<ThreadTimeAnswer> = resource(() => {
  if (!isShown.value) return null;
  const parameters = {
    ...{ query: query.value, from: from.value, until: until.value, by: by.value, limit: MOST_ROWS },
    ...waitLengths.value,
  };
  return ask("threads' time", parameters, (signal) => api.threadTime(parameters, signal));
});

/** The chosen row over time. */
export const rowTime: Resource<ThreadTimeAnswer> = resource(() => {
  if (!isShown.value || chosenRow.value === null) return null;
  const parameters = {
    ...{ query: rowQuery.value, from: from.value, until: until.value, by: by.value, limit: 1 },
    ...waitLengths.value,
  };
  return ask("its course", parameters, (signal) => api.threadTime(parameters, signal));
});

/** What was observed of the window, and what was lost there: of what ran, since the same agents tell of waits. */
const sums: Resource<WindowSums> = resource(() => {
  if (!isShown.value) return null;
  const parameters = { type: "cpu", query: query.value, from: from.value, until: until.value, min_share: ROOT_ONLY };
  return ask("quality of the data", parameters, (signal) => api.observed(parameters, signal));
});

export const told = computed(() => {
  const answer = threadTime.data.value;
  return answer === null ? null : threadTimeOf(answer);
});

export function startThreadTime(): void {
  threadTime.start();
  rowTime.start();
  runQueue.start();
  rowQueue.start();
  sums.start();
  threadSums.value = sums;
}
