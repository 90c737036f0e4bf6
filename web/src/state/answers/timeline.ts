/** Samples in the order of time, and what ran before those that have a frame. */
import { computed, signal } from "@preact/signals";
import { api, type Parameters, type TimelineAnswer } from "../../api/index.ts";
import { matcherOf, serverPattern } from "../../logic/flame/search.ts";
import { laneOf, parseSelector } from "../../logic/labels/selector.ts";
import { isWait } from "../../logic/text/unit.ts";
import type { ParsedFlamegraph } from "../../logic/tree/answer.ts";
import { fields } from "../address/page.ts";
import { parse } from "../question/parsing.ts";
import { ask, MIN_SHARE, ROOT_ONLY, range, SERIES_LIMIT, selection } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { sampled, type WindowSums } from "./explore.ts";

/** Samples of the timeline, unless more are asked for: an answer of a few megabytes. */
export const USUAL_MOMENTS = 20_000;

const { view, type, query, hit, before, limit, waits } = fields;

/** What waits stands between samples of what ran: it is no order of events by itself. */
const ran = computed<Parameters>(() => ({
  ...selection.value,
  ...(isWait(type.value) ? { type: "cpu", min_wait: undefined, max_wait: undefined } : {}),
}));

/** Samples of several CPUs are no order of events. */
export const hasLane = computed(() => {
  const lane = laneOf(parseSelector(query.value));
  return lane.cpu + lane.tid + lane.thread !== "";
});

/**
 * The lane that the page opened where nobody chose one: of which selection, and its selector. It is a choice of this
 * view alone: it stands in no address and narrows nothing else.
 */
export const openedLane = signal<{ query: string; lane: string } | null>(null);

/** Whether the lane on the screen is the page's choice. */
export const isLaneOpened = computed(() => !hasLane.value && openedLane.value?.query === query.value);

/** The selector of the lane on the screen. */
export const laneQuery = computed(() => (isLaneOpened.value ? (openedLane.value?.lane ?? "") : query.value));

/** The lane on the screen, as the server is asked for it; null where there is none. */
const shownLane = computed<Parameters | null>(() =>
  view.value === "timeline" && (hasLane.value || isLaneOpened.value)
    ? { ...ran.value, query: laneQuery.value, ...range.value }
    : null,
);

export const timeline: Resource<TimelineAnswer> = resource(() => {
  if (shownLane.value === null) return null;
  const parameters = {
    ...shownLane.value,
    limit: limit.value || USUAL_MOMENTS,
    ...(waits.value ? { waits: "true" } : {}),
  };
  return ask("timeline", parameters, (signal) => api.timeline(parameters, signal));
});

/** What was observed of the lane's window, and what was lost there: samples one by one come without it. */
const laneSums: Resource<WindowSums> = resource(() => {
  if (shownLane.value === null) return null;
  const parameters = { ...shownLane.value, min_share: ROOT_ONLY };
  return ask("quality of the data", parameters, (signal) => api.observed(parameters, signal));
});

/** What is looked for in the timeline. */
export const sought = computed(() => matcherOf(hit.value));

/** On which CPUs the frames were that are looked for, where none is chosen yet. */
export const hitCpus = resource(() => {
  const wanted = sought.value;
  if (view.value !== "timeline" || hasLane.value || isLaneOpened.value || wanted === null || "error" in wanted)
    return null;
  const parameters = { ...ran.value, by: "cpu", match: serverPattern(hit.value), limit: SERIES_LIMIT };
  return ask("CPUs", parameters, (signal) => api.series(parameters, signal));
});

/** The same for who shows them: those of another text are not where this one was. */
export const hitSeries = computed(() => {
  const wanted = sought.value;
  if (wanted === null || "error" in wanted || hitCpus.stale.value) return [];
  return hitCpus.data.value?.series ?? [];
});

/** Whether the page has a part for what ran before something. */
export const isBeforeShown = computed(() => view.value === "timeline" && before.value !== "" && hit.value !== "");

/** What ran before the frames that are looked for, as the server is asked; null where it can't be. */
export const beforeAsked = computed<Parameters | null>(() => {
  const wanted = sought.value;
  if (!isBeforeShown.value || wanted === null || "error" in wanted) return null;
  return {
    ...ran.value,
    ...range.value,
    before: `${before.value}ms`,
    match: serverPattern(hit.value),
    min_share: MIN_SHARE,
  };
});

export const beforeHits: Resource<ParsedFlamegraph> = resource(() => {
  const parameters = beforeAsked.value;
  if (parameters === null) return null;
  return ask("preceding samples", parameters, async (signal) =>
    parse("flamegraph", await api.before(parameters, signal), signal),
  );
});

/** Which answer says how good the data of the timeline is: the lane's, and without one that of what ran before. */
export const timelineSums = computed<Resource<WindowSums> | null>(() => {
  if (view.value !== "timeline") return null;
  if (shownLane.value !== null) return laneSums;
  return isBeforeShown.value ? beforeHits : null;
});

export function startTimeline(): void {
  for (const answer of [timeline, laneSums, hitCpus, beforeHits]) answer.start();
  sampled.value = { timeline, beforeHits, sums: timelineSums };
}
