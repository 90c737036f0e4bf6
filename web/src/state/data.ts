/** Every answer that the views show, each following the state by itself. Time starts to run here, nowhere else. */
import { batch, computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { type ApiError, api, type HeatmapAnswer, type Parameters, type TimelineAnswer } from "../api/index.ts";
import { type Baseline, baselineOf, historyOf } from "../logic/compare/baseline.ts";
import { type SideNames, sideNamesOf } from "../logic/compare/sideNames.ts";
import { byName, Letters, matcherOf, namesOf, search, serverPattern } from "../logic/flame/search.ts";
import { aligned, columnMs, parseMark, ROWS, sideOf } from "../logic/heatmap/marks.ts";
import { typesOf, typesQuery } from "../logic/labels/profileTypes.ts";
import { laneOf, parseSelector } from "../logic/labels/selector.ts";
import { stackOf } from "../logic/series/stack.ts";
import { isRelative, parseTime, type Window } from "../logic/time/time.ts";
import { around, askable, ordered, pairOf } from "../logic/time/windows.ts";
import type { ParsedDiff, ParsedFlamegraph } from "../logic/tree/answer.ts";
import { findFocus, findSelection, selectionOf } from "../logic/tree/focus.ts";
import { inSlices } from "../logic/tree/slices.ts";
import { type Transformed, transformed, transforming, transformsOf } from "../logic/tree/transform.ts";
import { ROOT, type Tree, withWidth } from "../logic/tree/tree.ts";
import { fields, navigate, type PageState, page, refresh, refreshes } from "./index.ts";
import { parse } from "./parsing.ts";
import { announce, pending, type Resource, resource } from "./resource.ts";
import { DEFAULTS } from "./url.ts";

const LIVE_MS = 5_000;
const NODES_MS = 5_000;
const AWAITING_MS = 3_000;
const SERIES_LIMIT = 19;
const TOP_LIMIT = 2_000;
/** Frames below a millionth of the window are folded by the server, so that nothing is left out of a million samples. */
const MIN_SHARE = 0.000001;
/** Samples of the timeline, unless more are asked for: an answer of a few megabytes. */
export const USUAL_MOMENTS = 20_000;
export const MOST_MOMENTS = 100_000;

const {
  view,
  type,
  query,
  from,
  until,
  by,
  baseQuery,
  baseFrom,
  baseUntil,
  normalize,
  width,
  measure,
  confidence,
  live,
  rank,
  chartFrom,
  chartUntil,
  markA,
  markB,
  column,
  hit,
  before,
  limit,
} = fields;

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

export function ask<T>(name: string, parameters: Parameters, run: (signal: AbortSignal) => Promise<T>) {
  return { name, question: `${name} ${JSON.stringify(parameters)}`, turn: refreshes.value, run };
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

/** The range of the page. */
export const range = computed<Window>(() => {
  const now = present.value;
  return ordered(parseTime(from.value, now) ?? now - 3_600_000, parseTime(until.value, now) ?? now);
});

/** What the heatmap shows: whole columns. */
const heatmapStep = computed(() => columnMs(range.value, column.value));
export const heatmapWindow = computed(() => aligned(range.value, heatmapStep.value));

export const heatmap: Resource<HeatmapAnswer> = resource(() => {
  if (view.value !== "heatmap") return null;
  const step = `${heatmapStep.value}ms`;
  const parameters = { type: type.value, query: query.value, ...heatmapWindow.value, step, rows: ROWS };
  return ask("heatmap", parameters, (signal) => api.heatmap(parameters, signal));
});

/** What is marked in the heatmap. */
export const marks = computed(() => {
  const [a, b] = [parseMark(markA.value), parseMark(markB.value)];
  const whole = heatmapWindow.value;
  return { a: sideOf(a, b, whole), b: sideOf(b, a, whole) };
});

/** Whether the lower half of the page shows a difference. */
export const comparing = computed(
  () => view.value === "compare" || (view.value === "heatmap" && marks.value.a !== null && marks.value.b !== null),
);

/** The one window whose profile is shown; null where two are compared, or none is. */
export const single = computed<Parameters | null>(() => {
  if (view.value === "explore") return selection.value;
  if (view.value !== "heatmap" || comparing.value) return null;
  const marked = marks.value.a ?? marks.value.b ?? { window: heatmapWindow.value };
  return { ...selection.value, ...marked.window };
});

export const flamegraph: Resource<ParsedFlamegraph> = resource(() => {
  if (single.value === null) return null;
  const parameters = { ...single.value, min_share: MIN_SHARE };
  return ask("flamegraph", parameters, async (signal) =>
    parse("flamegraph", await api.flamegraph(parameters, signal), signal),
  );
});

/** Nobody chose side A of the compare view. */
export const isChosenHere = computed(
  () => view.value === "compare" && [baseFrom, baseUntil].some(({ value }) => parseTime(value, 0) === null),
);

/** When side A's selection ran, before the range of the page and in it: what side A is chosen by. */
const history = resource(() => {
  if (!isChosenHere.value) return null;
  const given = range.value;
  const parameters = {
    type: type.value,
    query: baseQuery.value || query.value,
    ...askable(historyOf(given)),
    by: "mode",
  };
  return ask("baseline", parameters, async (signal) => ({ given, series: await api.series(parameters, signal) }));
});

/** What was chosen; null where a person chose, or until it is known. */
export const baseline = computed<Baseline | null>(() => {
  const known = history.data.value;
  if (!isChosenHere.value || known === null) return null;
  return baselineOf(stackOf(known.series), known.given, !isRelative(until.value));
});

/** Both windows are known. */
export const isPaired = computed(() => !isChosenHere.value || baseline.value !== null || history.error.value !== null);

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
    ...criteria(),
  };
}

export function criteria(): Parameters {
  return {
    normalize: normalize.value,
    measure: measure.value === DEFAULTS.measure ? "" : measure.value,
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
  };
  return ask("series", parameters, (signal) => api.series(parameters, signal));
});

export const compareStack = computed(() =>
  compareSeries.data.value === null ? null : stackOf(compareSeries.data.value),
);

export const diff: Resource<ParsedDiff> = resource(() => {
  if (!comparing.value || !isPaired.value) return null;
  const parameters = { ...pairParameters(), min_share: MIN_SHARE };
  return ask("diff", parameters, async (signal) => parse("diff", await api.diff(parameters, signal), signal));
});

export const diffTop = resource(() => {
  if (!comparing.value || !isPaired.value) return null;
  const parameters = { ...pairParameters(), by: "function", limit: TOP_LIMIT };
  return ask("top", parameters, (signal) => api.diffTop(parameters, signal));
});

/** Which selector the server can't read. Of a comparison, the chart is asked for side B alone. */
export const selectorFaults = computed<{ query: ApiError | null; base: ApiError | null }>(() => {
  const unread = (error: ApiError | null) => (error?.code === "bad_query" ? error : null);
  if (view.value === "heatmap") return { query: unread(heatmap.error.value), base: null };
  if (view.value === "timeline") return { query: unread(timeline.error.value), base: null };
  if (view.value !== "compare")
    return { query: unread(flamegraph.error.value) ?? unread(exploreSeries.error.value), base: null };
  const ofQuery = unread(compareSeries.error.value);
  return { query: ofQuery, base: ofQuery === null && !compareSeries.loading.value ? unread(diff.error.value) : null };
});

/** Values of a label by CPU time, where the table shows them instead of functions. */
export const ranking = resource(() => {
  if (single.value === null || rank.value === "function") return null;
  const parameters = { ...single.value, by: rank.value, limit: TOP_LIMIT };
  return ask("ranking", parameters, (signal) => api.ranking(parameters, signal));
});

/** Samples of several CPUs are no order of events. */
export const hasLane = computed(() => {
  const lane = laneOf(parseSelector(query.value));
  return lane.cpu + lane.tid + lane.thread !== "";
});

export const timeline: Resource<TimelineAnswer> = resource(() => {
  if (view.value !== "timeline" || !hasLane.value) return null;
  const parameters = { ...selection.value, ...range.value, limit: limit.value || USUAL_MOMENTS };
  return ask("timeline", parameters, (signal) => api.timeline(parameters, signal));
});

/** What is looked for in the timeline. */
export const sought = computed(() => matcherOf(hit.value));

/** On which CPUs the frames were that are looked for, where none is chosen yet. */
export const hitCpus = resource(() => {
  const wanted = sought.value;
  if (view.value !== "timeline" || hasLane.value || wanted === null || "error" in wanted) return null;
  const parameters = { ...selection.value, by: "cpu", match: serverPattern(hit.value), limit: SERIES_LIMIT };
  return ask("CPUs", parameters, (signal) => api.series(parameters, signal));
});

/** What ran before the frames that are looked for. */
export const beforeHits: Resource<ParsedFlamegraph> = resource(() => {
  const wanted = sought.value;
  if (view.value !== "timeline" || before.value === "" || wanted === null || "error" in wanted) return null;
  const parameters = {
    ...selection.value,
    ...range.value,
    before: `${before.value}ms`,
    match: serverPattern(hit.value),
    min_share: MIN_SHARE,
  };
  return ask("what ran before", parameters, async (signal) =>
    parse("flamegraph", await api.before(parameters, signal), signal),
  );
});

/** Asked for on every view: agents that are late make every answer less than it seems. */
export const nodes = resource(() => ask("nodes", {}, (signal) => api.nodes(signal)));

export const info = resource(() => ask("info", {}, (signal) => api.info(signal)));

export const labels = resource(() => ask("labels", {}, (signal) => api.labels(signal)));

/** Whether somebody looks at the list of profile types. */
export const wantsTypes = signal(false);

export const types = resource(() => {
  if (!wantsTypes.value) return null;
  const sql = typesQuery(range.value);
  return ask("profile types", { sql }, async (signal) => typesOf((await api.sql(sql, signal)).rows));
});

/** A window up to the present that is still empty: what was just started shows up by itself. */
export const awaiting = computed(
  () => view.value === "explore" && isRelative(until.value) && flamegraph.data.value?.samples === 0,
);

effect(() => {
  const period = view.value === "nodes" ? NODES_MS : awaiting.value ? AWAITING_MS : live.value ? LIVE_MS : 0;
  if (period === 0) return;
  const timer = setInterval(() => {
    // A question that takes longer than the period must not be cut off by its own repetition.
    const busy = pending.peek().length > 0;
    if (!document.hidden && !busy) refresh();
  }, period);
  return () => clearInterval(timer);
});

/** The tree as the server sent it, or why there is none. */
export const sent = computed<{ tree: Tree | null; fault: string }>(() => {
  const answer = comparing.value
    ? diff.data.value
    : view.value === "timeline"
      ? beforeHits.data.value
      : single.value === null
        ? null
        : flamegraph.data.value;
  if (answer === null) return { tree: null, fault: "" };
  const { tree: whole, fault } = answer;
  return { tree: whole === null ? null : withWidth(whole, width.value), fault };
});

export const transforms = computed(() => transformsOf(fields.transform.value));

/** Trees of so many frames are changed in slices, between which the page answers to hands: a million take a second and more. */
const LARGE = 100_000;
/** Milliseconds of a turn. */
const TURN_MS = 12;

const wantedChange = computed(() => ({ tree: sent.value.tree, list: transforms.value }));

/** Changes of large trees that are done, and how many there were. */
const made = new WeakMap<typeof wantedChange.value, Transformed>();
const done = signal(0);

/** A large tree is being changed: until then, what was there before stays. */
export const changing = computed(() => {
  void done.value;
  const { tree, list } = wantedChange.value;
  return tree !== null && tree.size >= LARGE && list.length > 0 && !made.has(wantedChange.value);
});

let newestChange: Transformed | null = null;
let settledText = "";

const changed = computed(() => {
  const { tree, list } = wantedChange.value;
  if (changing.value) return newestChange;
  newestChange = tree === null ? null : (made.get(wantedChange.value) ?? transformed(tree, list));
  settledText = fields.transform.peek();
  return newestChange;
});

/** Behind what waits for the page already; a timer would be slowed down while nobody looks. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

effect(() => {
  const wanted = wantedChange.value;
  if (!changing.value || wanted.tree === null) return;
  let isWanted = true;
  let since = performance.now();
  const rest = () =>
    performance.now() - since < TURN_MS ||
    nextTurn().then(() => {
      since = performance.now();
      return isWanted;
    });
  // What was there before; or the tree as it was sent, where another window is changed in the same way.
  const cancel = () => navigate({ transform: fields.transform.peek() === settledText ? "" : settledText, focus: "" });
  const ended = announce({ name: "changing the graph", since: Date.now(), cancel });
  void inSlices(transforming(wanted.tree, wanted.list), rest).then((change) => {
    if (change === null || !isWanted) return;
    made.set(wanted, change);
    done.value++;
  });
  return () => {
    isWanted = false;
    ended();
  };
});

/** The tree on the screen, or why there is none. */
export const tree = computed(() => ({ tree: changed.value?.tree ?? null, fault: sent.value.fault }));

/** The same from the root to the leaves, as samples are taken: what tables are of. */
export const upright = computed(() => changed.value?.upright ?? null);

/** Transforms that are about what this window does not have. */
export const idleTransforms = computed(() => changed.value?.missing ?? []);

/** Samples of the window, whatever the transforms leave of it. */
export const wholeSamples = computed(() => sent.value.tree?.total[ROOT] ?? 0);

/** The zoomed frame; the root where the address names none, or one that this tree lacks (`lost`). */
export const focus = computed(() => {
  const shown = tree.value.tree;
  if (shown === null) return { node: ROOT, lost: false };
  const found = findFocus(shown, fields.focus.value);
  return { node: found ?? ROOT, lost: found === null };
});

export const matching = computed(() => matcherOf(fields.match.value));

/** What tells whether a name is searched for; null where nothing is, or where the expression is broken. */
export const matcher = computed(() => {
  const wanted = matching.value;
  return wanted !== null && "matcher" in wanted ? wanted.matcher : null;
});

interface MatchedNames {
  tree: Tree;
  /** A flag a text of the tree. */
  names: Uint8Array;
}

/** The texts that a search looks at: names in the graph, and of what the table shows. */
const searchedNames = computed(() => {
  const [shown, taken] = [tree.value.tree, upright.value];
  if (shown === null) return null;
  const isOwn = taken === null || taken === shown || taken.strings !== shown.strings;
  const names = isOwn ? namesOf(shown) : namesOf(shown, taken);
  return { shown, names, letters: new Letters(shown.strings, names) };
});

/** Before the first letter of a search, where there is time. */
effect(() => {
  const shown = tree.value.tree;
  if (shown === null) return;
  const prepare = () => byName(shown);
  // Safari has no idle time.
  if ("requestIdleCallback" in globalThis) requestIdleCallback(prepare);
  else setTimeout(prepare, 200);
});

let newestNames: MatchedNames | null = null;

/** Which names match. Another letter often changes none of them: then nothing that follows is done again. */
export const matchedNames = computed<MatchedNames | null>(() => {
  const [searched, wanted] = [searchedNames.value, matching.value];
  if (searched === null || wanted === null || "error" in wanted) {
    newestNames = null;
    return null;
  }
  const flags = searched.letters.matches(wanted);
  const known = newestNames?.tree === searched.shown ? newestNames.names : null;
  if (known === null || searched.names.some((id) => known[id] !== flags[id]))
    newestNames = { tree: searched.shown, names: flags };
  return newestNames;
});

/**
 * What tables follow a search by: behind the picture that shows a letter, and not while letters come faster than pictures. Their rows cost as
 * much as the graph does. Where it is not a letter that changed, they follow at once: another tree, a search that a link brought, or its end.
 */
function behindPicture<T>(source: ReadonlySignal<T | null>) {
  const followed = signal<T | null>(null);
  let text = fields.match.peek();
  effect(() => {
    const now = source.value;
    const isLetter = text !== fields.match.peek();
    text = fields.match.peek();
    if (now === null || !isLetter) {
      followed.value = now;
      return;
    }
    let isNewest = true;
    const frame = requestAnimationFrame(() => {
      void nextTurn().then(() => {
        if (isNewest) followed.value = now;
      });
    });
    return () => {
      isNewest = false;
      cancelAnimationFrame(frame);
    };
  });
  return followed as ReadonlySignal<T | null>;
}

export const tableNames = behindPicture(matchedNames);
export const tableMatcher = behindPicture(matcher);

export const searchResult = computed(() => {
  const matched = matchedNames.value;
  return matched === null ? null : search(matched.tree, matched.names, focus.value.node);
});

/** The share of a search in the whole profile, asked for where the tree on the screen was trimmed. */
export const wholeMatch = resource(() => {
  if (single.value === null || sent.value.tree?.trimmed !== true || matcher.value === null) return null;
  if (fields.transform.value !== "") return null;
  const { from: begin, until: end } = flamegraph.data.value ?? { from: 0, until: 0 };
  const parameters = {
    ...selection.value,
    from: begin,
    until: end,
    min_share: 1,
    match: serverPattern(fields.match.value),
  };
  return ask("match", parameters, (signal) => api.match(parameters, signal));
});

/** What was selected on this screen: siblings of one name, in several modules, are one text in the address. */
const picked = signal<{ tree: Tree; text: string; node: number } | null>(null);

/** The frame that the keyboard or a click selected; null for none, and where this tree has it not. */
export const selected = computed(() => {
  const shown = tree.value.tree;
  const text = fields.frame.value;
  if (shown === null) return null;
  const known = picked.value;
  return known?.tree === shown && known.text === text ? known.node : findSelection(shown, text);
});

/** Selects a frame, or none, with what else changes. Steps from frame to frame that follow each other closely are one for Back. */
export function select(node: number | null, change: Partial<PageState> = {}, gesture = "select"): void {
  const shown = tree.peek().tree;
  if (shown === null) return;
  const text = selectionOf(shown, node);
  batch(() => {
    picked.value = node === null ? null : { tree: shown, text, node };
    navigate({ frame: text, ...change }, gesture);
  });
}

/** The name of the function that the pointer is on: in the graph, and in the table. Each outlines it in the other. */
export const pointedFrame = signal<string | null>(null);
export const pointedRow = signal<string | null>(null);

/** The theme in effect. */
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const system = signal(systemDark.matches);
systemDark.addEventListener("change", () => {
  system.value = systemDark.matches;
});

/** Paper is white. */
addEventListener("beforeprint", () => document.documentElement.classList.add("paper"));
addEventListener("afterprint", () => document.documentElement.classList.remove("paper"));
const paper = matchMedia("print");
const printing = signal(paper.matches);
paper.addEventListener("change", () => {
  printing.value = paper.matches;
});

export const theme = computed<"light" | "dark">(() =>
  printing.value ? "light" : page.value.theme || (system.value ? "dark" : "light"),
);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
