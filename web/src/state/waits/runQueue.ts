/** How long threads waited for a CPU: what is selected, by a label, and the course of the row that was chosen. */
import { computed } from "@preact/signals";
import { api, type RunQueueAnswer } from "../../api/index.ts";
import { ofQueues, queueLabel, uncounted } from "../../logic/waits/queueLengths.ts";
import { fields } from "../address/page.ts";
import { ask } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { chosenRow, rowQuery } from "./row.ts";

/** Rows of the table; the server says how many more there are. */
const MOST_ROWS = 200;

const { view, query, from, until, by } = fields;

export const queueBy = computed(() => queueLabel(by.value));

/** Why nothing is told of the chosen row; undefined where something is, and where none is chosen. */
export const rowUncounted = computed(() => (chosenRow.value === null ? undefined : uncounted(rowQuery.value)));

function asked(what: string, selector: string, limit: number) {
  if (view.value !== "threads" || uncounted(selector) !== undefined) return null;
  const of = ofQueues(selector);
  const parameters = { query: of, from: from.value, until: until.value, by: queueLabel(by.value), limit };
  return ask(what, parameters, (signal) => api.runQueue(parameters, signal));
}

export const runQueue: Resource<RunQueueAnswer> = resource(() => asked("waits for a CPU", query.value, MOST_ROWS));

/** The chosen row's: all that its selector selects. */
export const rowQueue: Resource<RunQueueAnswer> = resource(() =>
  chosenRow.value === null ? null : asked("its waits for a CPU", rowQuery.value, 1),
);
