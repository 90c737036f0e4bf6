/** What happened in the range of the charts: notes, versions that came, agents that began, bursts. */
import { api } from "../../api/index.ts";
import { commonSelector } from "../../logic/compare/versions.ts";
import { fields } from "../address/page.ts";
import { pair } from "../answers/compare.ts";
import { ask, range } from "../question/question.ts";
import { resource } from "../question/resource.ts";

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
