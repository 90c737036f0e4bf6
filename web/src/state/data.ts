/** Every answer that the views show, each following the state by itself. Time starts to run here, nowhere else. */
import { computed, effect, signal } from "@preact/signals";
import { type ApiError, api, type DiffAnswer, type FlamegraphAnswer, type Parameters } from "../api/index.ts";
import { findFocus } from "../logic/focus.ts";
import { matcherOf, search, serverPattern } from "../logic/search.ts";
import { stackOf } from "../logic/stack.ts";
import { isRelative, parseTime, type Window } from "../logic/time.ts";
import { transformed, transformsOf } from "../logic/transform.ts";
import { BadTree, diffTreeOf, ROOT, type Tree, treeOf } from "../logic/tree.ts";
import { around, ordered, pairOf } from "../logic/windows.ts";
import { type PageState, page, refresh, refreshes } from "./index.ts";
import { type Resource, resource } from "./resource.ts";

const LIVE_MS = 5_000;
const NODES_MS = 5_000;
const AWAITING_MS = 3_000;
const SERIES_LIMIT = 19;
const TOP_LIMIT = 2_000;
/** Frames below a millionth of the window are folded by the server, so that nothing is left out of a million samples. */
const MIN_SHARE = 0.000001;

/** One field of the state: what depends on it alone is not computed anew when another field changes. */
function field<K extends keyof PageState>(key: K) {
  return computed(() => page.value[key]);
}

const view = field("view");
const type = field("type");
const query = field("query");
const from = field("from");
const until = field("until");
const by = field("by");
const baseQuery = field("baseQuery");
const baseFrom = field("baseFrom");
const baseUntil = field("baseUntil");
const normalize = field("normalize");
const width = field("width");
const live = field("live");
const rank = field("rank");
const chartFrom = field("chartFrom");
const chartUntil = field("chartUntil");

/** The present, as of the last question; moves when something is asked anew, so that windows hold still in between. */
export const present = computed(() => {
  void refreshes.value;
  void from.value;
  void until.value;
  void view.value;
  return Date.now();
});

/** Moves each second, for "… ago". */
export const clockNow = signal(Date.now());

setInterval(() => {
  clockNow.value = Date.now();
}, 1000);

function ask<T>(name: string, parameters: Parameters, run: (signal: AbortSignal) => Promise<T>) {
  return { question: `${name} ${JSON.stringify(parameters)}`, turn: refreshes.value, run };
}

const selection = computed<Parameters>(() => ({
  type: type.value,
  query: query.value,
  from: from.value,
  until: until.value,
}));

export const exploreSeries: Resource<Awaited<ReturnType<typeof api.series>>> = resource(() => {
  if (view.value !== "explore") return null;
  const parameters = { ...selection.value, by: by.value, limit: SERIES_LIMIT };
  return ask("series", parameters, (signal) => api.series(parameters, signal));
});

export const exploreStack = computed(() =>
  exploreSeries.data.value === null ? null : stackOf(exploreSeries.data.value),
);

export const flamegraph: Resource<FlamegraphAnswer> = resource(() => {
  if (view.value !== "explore") return null;
  const parameters = { ...selection.value, min_share: MIN_SHARE };
  return ask("flamegraph", parameters, (signal) => api.flamegraph(parameters, signal));
});

/** The two windows of the compare view and what its chart shows. */
export const pair = computed(() => {
  const texts = { from: from.value, until: until.value, baseFrom: baseFrom.value, baseUntil: baseUntil.value };
  const both = pairOf(texts, present.value);
  const begin = parseTime(chartFrom.value, present.value);
  const end = parseTime(chartUntil.value, present.value);
  const chart = begin !== null && end !== null ? ordered(begin, end) : around(both.base, both.comparison);
  return { ...both, chart };
});

export function pairParameters(): Parameters {
  const { base, comparison } = pair.value;
  return {
    type: type.value,
    query: query.value,
    from: comparison.from,
    until: comparison.until,
    base_query: baseQuery.value,
    base_from: base.from,
    base_until: base.until,
    normalize: normalize.value,
  };
}

export const compareSeries: Resource<Awaited<ReturnType<typeof api.series>>> = resource(() => {
  if (view.value !== "compare") return null;
  const chart: Window = pair.value.chart;
  const parameters = {
    type: type.value,
    query: query.value,
    from: chart.from,
    until: chart.until,
    by: by.value,
    limit: SERIES_LIMIT,
  };
  return ask("series", parameters, (signal) => api.series(parameters, signal));
});

export const compareStack = computed(() =>
  compareSeries.data.value === null ? null : stackOf(compareSeries.data.value),
);

export const diff: Resource<DiffAnswer> = resource(() => {
  if (view.value !== "compare") return null;
  const parameters = { ...pairParameters(), min_share: MIN_SHARE };
  return ask("diff", parameters, (signal) => api.diff(parameters, signal));
});

export const diffTop = resource(() => {
  if (view.value !== "compare") return null;
  const parameters = { ...pairParameters(), by: "function", limit: TOP_LIMIT };
  return ask("top", parameters, (signal) => api.diffTop(parameters, signal));
});

/** Which selector the server can't read. Of a comparison, the chart is asked for side B alone. */
export const selectorFaults = computed<{ query: ApiError | null; base: ApiError | null }>(() => {
  const unread = (error: ApiError | null) => (error?.code === "bad_query" ? error : null);
  if (view.value !== "compare")
    return { query: unread(flamegraph.error.value) ?? unread(exploreSeries.error.value), base: null };
  const ofQuery = unread(compareSeries.error.value);
  return { query: ofQuery, base: ofQuery === null && !compareSeries.loading.value ? unread(diff.error.value) : null };
});

/** Values of a label by CPU time, where the table shows them instead of functions. */
export const ranking = resource(() => {
  if (view.value !== "explore" || rank.value === "function") return null;
  const parameters = { ...selection.value, by: rank.value, limit: TOP_LIMIT };
  return ask("ranking", parameters, (signal) => api.ranking(parameters, signal));
});

export const nodes = resource(() => {
  if (view.value !== "nodes") return null;
  return ask("nodes", {}, (signal) => api.nodes(signal));
});

export const info = resource(() => ask("info", {}, (signal) => api.info(signal)));

export const labels = resource(() => ask("labels", {}, (signal) => api.labels(signal)));

/** A window up to the present that is still empty: what was just started shows up by itself. */
export const awaiting = computed(
  () => view.value === "explore" && isRelative(until.value) && flamegraph.data.value?.samples === 0,
);

effect(() => {
  const period = view.value === "nodes" ? NODES_MS : awaiting.value ? AWAITING_MS : live.value ? LIVE_MS : 0;
  if (period === 0) return;
  const timer = setInterval(() => {
    // A question that takes longer than the period must not be cut off by its own repetition.
    const busy = [exploreSeries, flamegraph, ranking, nodes].some((one) => one.loading.peek());
    if (!document.hidden && !busy) refresh();
  }, period);
  return () => clearInterval(timer);
});

/** The tree as the server sent it, or why there is none. */
const sent = computed<{ tree: Tree | null; fault: string }>(() => {
  const shown = view.value;
  try {
    if (shown === "explore" && flamegraph.data.value !== null)
      return { tree: treeOf(flamegraph.data.value), fault: "" };
    if (shown === "compare" && diff.data.value !== null)
      return { tree: diffTreeOf(diff.data.value, width.value), fault: "" };
  } catch (error) {
    if (error instanceof BadTree) return { tree: null, fault: error.message };
    throw error;
  }
  return { tree: null, fault: "" };
});

const transformText = field("transform");

export const transforms = computed(() => transformsOf(transformText.value));

const changed = computed(() => (sent.value.tree === null ? null : transformed(sent.value.tree, transforms.value)));

/** The tree on the screen, or why there is none. */
export const tree = computed(() => ({ tree: changed.value?.tree ?? null, fault: sent.value.fault }));

/** The same from the root to the leaves, as samples are taken: what tables are of. */
export const upright = computed(() => changed.value?.upright ?? null);

/** Transforms that are about what this window does not have. */
export const idleTransforms = computed(() => changed.value?.missing ?? []);

/** Samples of the window, whatever the transforms leave of it. */
export const wholeSamples = computed(() => sent.value.tree?.total[ROOT] ?? 0);

const focusText = field("focus");

/** The zoomed frame; the root where the address names none, or one that this tree lacks (`lost`). */
export const focus = computed(() => {
  const shown = tree.value.tree;
  if (shown === null) return { node: ROOT, lost: false };
  const found = findFocus(shown, focusText.value);
  return { node: found ?? ROOT, lost: found === null };
});

const matchText = field("match");

export const matching = computed(() => matcherOf(matchText.value));

/** What tells whether a name is searched for; null where nothing is, or where the expression is broken. */
export const matcher = computed(() => {
  const wanted = matching.value;
  return wanted !== null && "matcher" in wanted ? wanted.matcher : null;
});

export const searchResult = computed(() => {
  const shown = tree.value.tree;
  const wanted = matcher.value;
  if (shown === null || wanted === null) return null;
  return search(shown, wanted, focus.value.node);
});

/** The share of a search in the whole profile, asked for where the tree on the screen was trimmed. */
export const wholeMatch = resource(() => {
  if (view.value !== "explore" || sent.value.tree?.trimmed !== true || matcher.value === null) return null;
  if (transformText.value !== "") return null;
  const { from: begin, until: end } = flamegraph.data.value ?? { from: 0, until: 0 };
  const parameters = {
    ...selection.value,
    from: begin,
    until: end,
    min_share: 1,
    match: serverPattern(matchText.value),
  };
  return ask("match", parameters, async (signal) => (await api.flamegraph(parameters, signal)).match);
});

/** The frame that the keyboard or a click selected; null for none. Forgotten with the tree that it belongs to. */
export const selected = signal<number | null>(null);

effect(() => {
  void tree.value;
  selected.value = null;
});

/** The name of the function that the pointer is on: in the graph, and in the table. Each outlines it in the other. */
export const pointedFrame = signal<string | null>(null);
export const pointedRow = signal<string | null>(null);

/** The theme in effect. */
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const system = signal(systemDark.matches);
systemDark.addEventListener("change", () => {
  system.value = systemDark.matches;
});

export const theme = computed<"light" | "dark">(() => page.value.theme || (system.value ? "dark" : "light"));

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
