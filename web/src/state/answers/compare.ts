/**
 * Two windows side by side. In: the address, and what was marked in a heatmap. Out: which two windows they are and what
 * they are called, the chart over both, and the difference as the server judged it.
 */
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { api, type DiffTopRow, type Parameters, type TopAnswer } from "../../api/index.ts";
import type { Baseline } from "../../logic/compare/baseline.ts";
import { type SideNames, sideNamesOf } from "../../logic/compare/sideNames.ts";
import { stackOf } from "../../logic/series/stack.ts";
import { measureFor } from "../../logic/table/measured.ts";
import { isRelative, parseTime, type Window } from "../../logic/time/time.ts";
import { around, askable, historyOf, ordered, pairOf } from "../../logic/time/windows.ts";
import type { ParsedDiff } from "../../logic/tree/answer.ts";
import { fields, rows } from "../address/page.ts";
import { parse } from "../question/parsing.ts";
import {
  ask,
  grouped,
  lengths,
  MIN_SHARE,
  ownFrames,
  present,
  range,
  SERIES_LIMIT,
  TOP_LIMIT,
} from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { marks } from "./heatmap.ts";

const { view, type, query, from, until, by, baseQuery, baseFrom, baseUntil } = fields;
const { normalize, measure, confidence, chartFrom, chartUntil } = fields;

/** Labels by which both sides are told apart, in the order of their tabs. */
export const LABEL_ORDER = ["service", "pod", "unit", "container", "node", "process", "thread", "version"];

/** What the part of the page that compares brings once it is there: until then nothing is judged by labels. */
export interface ByLabels {
  /** Labels that nothing in the range has, as far as that is known. */
  absentLabels: ReadonlySignal<readonly string[]>;
  changedMost: Resource<TopAnswer<DiffTopRow>>;
}

export const byLabels = signal<ByLabels | null>(null);

/** Whether the lower half of the page shows a difference. */
export const comparing = computed(
  () => view.value === "compare" || (view.value === "heatmap" && marks.value.a !== null && marks.value.b !== null),
);

/** Nobody chose side A of the compare view. */
export const isChosenHere = computed(
  () => view.value === "compare" && [baseFrom, baseUntil].some(({ value }) => parseTime(value, 0) === null),
);

/** When side A's selection ran, before the range of the page and in it: what side A is chosen by. */
export const baselineHistory = resource(() => {
  if (!isChosenHere.value) return null;
  const given = range.value;
  const parameters = {
    type: type.value,
    query: baseQuery.value || query.value,
    ...askable(historyOf(given)),
    by: "mode",
    ...lengths.value,
  };
  return ask("baseline", parameters, async (signal) => {
    const [series, { baselineOf }] = await Promise.all([
      api.series(parameters, signal),
      import("../../logic/compare/baseline.ts"),
    ]);
    return { given, series, baselineOf };
  });
});

/** What was chosen; null where a person chose, or until it is known. */
export const baseline = computed<Baseline | null>(() => {
  const known = baselineHistory.data.value;
  if (!isChosenHere.value || known === null) return null;
  return known.baselineOf(stackOf(known.series), known.given, !isRelative(until.value));
});

/** Both windows are known. */
export const isPaired = computed(
  () => !isChosenHere.value || baseline.value !== null || baselineHistory.error.value !== null,
);

/** The two windows of the compare view and what its chart shows. */
export const pair = computed(() => {
  const texts = { from: from.value, until: until.value, baseFrom: baseFrom.value, baseUntil: baseUntil.value };
  const both = baseline.value ?? pairOf(texts, present.value);
  const begin = parseTime(chartFrom.value, present.value);
  const end = parseTime(chartUntil.value, present.value);
  const chart = begin !== null && end !== null ? askable(ordered(begin, end)) : around(both.base, both.comparison);
  return { ...both, chart };
});

/** What the two sides are called. */
export const sideNames = computed<SideNames>(() => {
  if (view.value === "compare")
    return sideNamesOf(baseQuery.value || query.value, query.value, pair.value.base.from < pair.value.comparison.from);
  const { a, b } = marks.value;
  // The rest of a range lies on both sides of what it is compared with.
  const inTurn = a !== null && b !== null && !a.except && !b.except && a.window.from < b.window.from;
  return sideNamesOf(query.value, query.value, inTurn);
});

/** Both sides that are marked in the heatmap, as the server is asked. */
function markedParameters(): Parameters {
  const { a, b } = marks.value;
  return {
    type: type.value,
    query: query.value,
    from: b?.window.from,
    until: b?.window.until,
    except_from: b?.except?.from,
    except_until: b?.except?.until,
    base_from: a?.window.from,
    base_until: a?.window.until,
    base_except_from: a?.except?.from,
    base_except_until: a?.except?.until,
    normalize: normalize.value,
    ...lengths.value,
    ...ownFrames.value,
  };
}

export function pairParameters(): Parameters {
  if (view.value === "heatmap") return markedParameters();
  const { base, comparison } = pair.value;
  return {
    type: type.value,
    query: query.value,
    from: comparison.from,
    until: comparison.until,
    base_query: baseQuery.value,
    base_from: base.from,
    base_until: base.until,
    ...lengths.value,
    ...ownFrames.value,
    ...criteria(),
  };
}

export function criteria(): Parameters {
  return {
    normalize: normalize.value,
    measure: measure.value,
    confidence: confidence.value,
  };
}

export const compareSeries: Resource<Awaited<ReturnType<typeof api.series>>> = resource(() => {
  if (view.value !== "compare" || !isPaired.value) return null;
  const chart: Window = pair.value.chart;
  const parameters = {
    type: type.value,
    query: query.value,
    from: chart.from,
    until: chart.until,
    by: by.value,
    limit: SERIES_LIMIT,
    ...lengths.value,
  };
  return ask("series", parameters, (signal) => api.series(parameters, signal));
});

export const compareStack = computed(() =>
  compareSeries.data.value === null ? null : stackOf(compareSeries.data.value),
);

export const diff: Resource<ParsedDiff> = resource(() => {
  if (!comparing.value || !isPaired.value) return null;
  const parameters = { ...pairParameters(), ...grouped(rows.value.labels), min_share: MIN_SHARE };
  return ask("diff", parameters, async (signal) => parse("diff", await api.diff(parameters, signal), signal));
});

export const diffTop = resource(() => {
  if (!comparing.value || !isPaired.value) return null;
  const ranked = measureFor("function", measure.value);
  const parameters = { ...pairParameters(), by: "function", limit: TOP_LIMIT, measure: ranked };
  return ask("top", parameters, (signal) => api.diffTop(parameters, signal));
});
