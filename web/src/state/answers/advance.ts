/**
 * The chart goes on to the next label where a value was chosen: by the service's own layers it would be one. Labels of
 * which the selection has one value, or none, are passed, until the person chooses another.
 */
import { effect } from "@preact/signals";
import { labelBehind, nextLabel } from "../../logic/labels/path.ts";
import { amend, fields } from "../address/page.ts";
import { compareSeries } from "./compare.ts";
import { exploreSeries } from "./explore.ts";
import { labels } from "./server.ts";

let isAdvancing: { query: string; by: string } | null = null;

const known = () => labels.data.peek()?.labels ?? ["service", "pod", "unit", "process", "thread"];

/** What the chart is by once a value of a label is chosen; the same where nothing lies below it. */
export function byBehind(label: string, query: string): string {
  const next = nextLabel(label, known());
  isAdvancing = next === null ? null : { query, by: next };
  return next ?? fields.by.peek();
}

export function startAdvance(): void {
  effect(() => {
    const series = fields.view.value === "compare" ? compareSeries : exploreSeries;
    const answer = series.data.value;
    const [by, query] = [fields.by.value, fields.query.value];
    if (isAdvancing === null || series.loading.value || answer === null || answer.by !== by) return;
    const next = labelBehind(by, known());
    const isWanted = isAdvancing.query === query && isAdvancing.by === by;
    isAdvancing = null;
    if (!isWanted || next === null || answer.series.length > 1 || answer.other !== null) return;
    isAdvancing = { query, by: next };
    amend({ by: next });
  });
}
