/** What happened in the range of the charts: notes, versions that came, agents that began, bursts. */
import { api } from "../../api/index.ts";
import type { Marker, OlderMarkers } from "../../api/types.ts";
import { commonSelector } from "../../logic/compare/versions.ts";
import { ordered, type Window } from "../../logic/time/windows.ts";
import { fields, navigate } from "../address/page.ts";
import { pair } from "../answers/compare.ts";
import { ask, range } from "../question/question.ts";
import { resource } from "../question/resource.ts";

export const NO_MARKERS: readonly Marker[] = [];
export const NONE_OLDER: readonly OlderMarkers[] = [];

/** The charts show this time: what was counted there is told. */
export function zoomToTime(time: Window): void {
  const { from, until } = ordered(time.from, time.until);
  const [begin, end] = [String(from), String(until)];
  if (fields.view.peek() === "compare") navigate({ chartFrom: begin, chartUntil: end });
  else navigate({ from: begin, until: end, zoom: "", box: "", live: false });
}

/** What the charts of the view show. */
export function chartWindow() {
  return fields.view.value === "compare" ? pair.value.chart : range.value;
}

/** Not asked for where nobody wants to see them. */
export const markers = resource(() => {
  if (!fields.markers.value || fields.view.value === "nodes") return null;
  const { view, from, until, query, baseQuery } = fields;
  const isCompare = view.value === "compare";
  const window = isCompare ? pair.value.chart : { from: from.value, until: until.value };
  // Two selections have the markers of what both ask.
  const isTwo = isCompare && baseQuery.value !== "";
  const parameters = { query: isTwo ? commonSelector(baseQuery.value, query.value) : query.value, ...window };
  return ask("markers", parameters, (signal) => api.markers(parameters, signal));
});
