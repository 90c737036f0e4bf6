/** What a comparison says beside the difference itself: findings, the A/A control, versions of the agents. */
import { computed } from "@preact/signals";
import { api, type DiffAnswer, type SeriesAnswer } from "../../api/index.ts";
import { causesOf } from "../../logic/compare/causes.ts";
import { versionsStatement, type Watchers, watchersOf } from "../../logic/compare/caveats.ts";
import { stackOf } from "../../logic/series/stack.ts";
import { halves } from "../../logic/time/windows.ts";
import { page, rows } from "../address/page.ts";
import { comparing, criteria, diff, isPaired, pair } from "../answers/compare.ts";
import { ask, grouped, lengths, ownFrames, ROOT_ONLY } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";

/** Why both sides differ, on the tree as it was sent, whatever its frames' widths are; empty while there is none. */
export const changes = computed(() => {
  const answer = comparing.value ? diff.data.value : null;
  const whole = answer?.tree ?? null;
  return answer === null || whole === null || whole.diff === null ? [] : causesOf(whole, answer.measure);
});

/** Where side A has a selector of its own, its cores over the time of the chart, whatever their layers. */
const baseSeries: Resource<SeriesAnswer> = resource(() => {
  const { view, type, baseQuery, by } = page.value;
  if (view !== "compare" || baseQuery === "" || !isPaired.value) return null;
  const { from, until } = pair.value.chart;
  const parameters = { type, query: baseQuery, from, until, by, limit: 1, ...lengths.value };
  return ask("series of A", parameters, (signal) => api.series(parameters, signal));
});

export const baseStack = computed(() => {
  const answer = baseSeries.data.value;
  return answer === null || page.value.baseQuery === "" ? null : stackOf(answer);
});

/** The A/A control: the halves of window A, judged like the comparison. Of the tree only the root is wanted. */
export const control: Resource<DiffAnswer> = resource(() => {
  const answer = diff.data.value;
  const { view, type, query, baseQuery } = page.value;
  if (!comparing.value || answer === null || answer.base.samples === 0) return null;
  const { base, comparison } = halves(answer.base);
  // A heatmap is of one selector, and judges by what is usual.
  const [selector, judged] = view === "compare" ? [baseQuery || query, criteria()] : [query, {}];
  const parameters = {
    type,
    query: selector,
    from: comparison.from,
    until: comparison.until,
    base_query: selector,
    base_from: base.from,
    base_until: base.until,
    except_from: comparison.except?.[0],
    except_until: comparison.except?.[1],
    base_except_from: base.except?.[0],
    base_except_until: base.except?.[1],
    ...judged,
    ...grouped(rows.value.labels),
    normalize: answer.normalize,
    min_share: ROOT_ONLY,
    ...lengths.value,
    ...ownFrames.value,
  };
  return ask("control", parameters, (signal) => api.judged(parameters, signal));
});

/** Versions of the agents that reported in either window. */
export const watchers: Resource<Watchers> = resource(() => {
  const answer = diff.data.value;
  if (!comparing.value || answer === null) return null;
  const statement = versionsStatement([answer.base, answer.comparison]);
  return ask("versions", { statement }, async (signal) => watchersOf((await api.sql(statement, signal)).rows));
});

export function startFindings(): void {
  baseSeries.start();
  control.start();
  watchers.start();
}
