/** The row of threads' time that was chosen. */
import { computed } from "@preact/signals";
import { withMatcher } from "../../logic/labels/selector.ts";
import { fields } from "../address/page.ts";

const { query, by, row } = fields;

/** Its name, which may be empty; null where none is chosen. */
export const chosenRow = computed(() => (row.value.startsWith("=") ? row.value.slice(1) : null));

/** The selector of the chosen row. */
export const rowQuery = computed(() =>
  chosenRow.value === null
    ? query.value
    : withMatcher(query.value, { label: by.value, operator: "=", value: chosenRow.value }),
);
