/** How long threads waited for a CPU: what is selected, by a label. */
import { computed } from "@preact/signals";
import { api, type RunQueueAnswer } from "../../api/index.ts";
import { queueLabel, uncounted } from "../../logic/waits/queueLengths.ts";
import { fields } from "../address/page.ts";
import { ask } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";

/** Rows of the table; the server says how many more there are. */
const MOST_ROWS = 200;

const { view, query, from, until, by } = fields;

export const queueBy = computed(() => queueLabel(by.value, query.value));

export const runQueue: Resource<RunQueueAnswer> = resource(() => {
  if (view.value !== "threads" || uncounted(query.value) !== undefined) return null;
  const parameters = {
    query: query.value,
    from: from.value,
    until: until.value,
    by: queueBy.value,
    limit: MOST_ROWS,
  };
  return ask("waits for a CPU", parameters, (signal) => api.runQueue(parameters, signal));
});
