/**
 * The URL is the state. In: the search part of the address. Out: a complete `PageState`; and back, leaving out what has
 * its default. Unknown parameters and bad values fall back to the default, so that an old link still opens.
 */
import type { Measured, Normalize } from "../../api/types.ts";
import { UNITS, type UnitChoice } from "../../logic/text/figure.ts";
import type { Zone } from "../../logic/time/zone.ts";
import type { Width } from "../../logic/tree/tree.ts";

export interface PageState {
  view: "explore" | "compare" | "heatmap" | "timeline" | "threads" | "nodes";
  type: string;
  query: string;
  from: string;
  until: string;
  by: string;
  /** Side A's selector; empty means the same as `query`. */
  baseQuery: string;
  baseFrom: string;
  baseUntil: string;
  /** Empty: the server chooses. */
  normalize: Normalize | "";
  match: string;
  focus: string;
  /** The selected frame, as `logic/tree/focus.ts` writes it; empty: none. */
  frame: string;
  /** What the history of the selected frame is of: its function everywhere, or this place of it. */
  history: "" | "place";
  /** What of the zoomed frame's width is in sight, `FROM-UNTIL` in millionths; empty: all. */
  part: string;
  /** Open rows of the tree of frames, as `logic/tree/outline.ts` writes it; empty: what opens by itself. */
  open: string;
  /**
   * What a table is sorted by, with `-` from the most on; empty, or what the table on the screen lacks: its own choice.
   */
  sort: string;
  /** All sentences of a comparison, not only the largest changes. */
  all: boolean;
  /** Labels whose values stand as rows above the stacks, or `none`, `auto`; empty: see `logic/labels/rows.ts`. */
  group: string;
  /** What is done to the tree, in this order: `hide:malloc;merge`. */
  transform: string;
  /** C functions of interpreters and virtual machines, between the functions that they run; empty: folded. */
  runtime_frames: "" | "show";
  /** What a frame's colour tells; empty: the difference in a comparison, else the module. */
  colour: "" | "kind" | "module";
  theme: "" | "light" | "dark";
  /** What numbers are told in; empty: cores, and of a comparison what was judged. */
  unit: UnitChoice | "";
  /** The zone that times are told in. */
  tz: Zone;
  /** What the chart of the compare view shows; empty: both windows with some air. */
  chartFrom: string;
  chartUntil: string;
  layout: "icicle" | "flame";
  pane: "both" | "graph" | "tree" | "table";
  /** What the table of one window ranks: functions, or the values of a label. */
  rank: string;
  width: Width;
  /** Both sides of a comparison as one graph, or each as one of its own. */
  graphs: "union" | "beside";
  only: "" | "significant" | "new" | "gone";
  /** What of a frame is compared; empty: its total, and of the table of functions what each takes itself. */
  measure: Measured | "";
  /** Of a comparison, as the server takes it; empty: its default. */
  confidence: "" | "0.8" | "0.9" | "0.99" | "0.999";
  /** Both windows keep the same length. */
  lock: boolean;
  live: boolean;
  capacity: boolean;
  /** Spans that are marked in the heatmap (`FROM-UNTIL`), or `rest` for all but the other one. */
  markA: string;
  markB: string;
  /** Which mark a drag in the heatmap makes; with Alt the other one. */
  letter: "A" | "B";
  /** Seconds of a column of the heatmap; empty: as short as the range allows. */
  column: string;
  /** What of the timeline is in sight (`FROM-UNTIL`); empty: all. */
  zoom: string;
  /** The selected frame of the timeline, as `logic/flame/timeline.ts` writes it; empty: none. */
  box: string;
  /** Frames that are looked for in the timeline, and how many milliseconds before them are of interest. */
  hit: string;
  before: string;
  /** Most samples of the timeline; empty: the usual number. */
  limit: string;
  /** Waits stand beside the samples of the timeline. */
  waits: boolean;
  /** The selected wait of the timeline, as `logic/waits/lanes.ts` writes it; empty: none. */
  wait: string;
  /** Who ended the waits of the graph stands above it as a graph of its own, in which a frame may be zoomed. */
  woken: boolean;
  waker: string;
  /** Waits shorter, and waits longer than so many milliseconds are left out; empty: none. */
  least: string;
  most: string;
  /** The row of the threads' time whose course is drawn, by its name behind a `=`; empty: all of them. */
  row: string;
  /** Agents that were replaced are listed too. */
  ended: boolean;
  /** What of the agents is listed: words, a state, a version, a kernel, what is wrong; empty: all. */
  find: string;
  state: "" | "live" | "silent" | "replaced" | "sender";
  agentVersion: string;
  kernel: string;
  trouble: "" | "any" | "silent" | "lost" | "limits" | "refused" | "offline";
  /** The agent that is told in full, by its instance, else by its node. */
  agent: string;
  /** Moments of notes, versions and agents on the time axes. */
  markers: boolean;
  /** By what the history of the selected frame is divided. */
  split: "" | "version";
  /** How layers of the chart are drawn. */
  draw: "stacked" | "lines";
  /** User and system time of each layer apart. */
  apart: boolean;
  /** The lists of the largest nodes, services, … can be chosen beside the graph. */
  lists: boolean;
  /** What stands beside the graph; empty: the selected frame, else what is usual in the view. */
  tab: string;
  /** Controls that are unfolded, by name, joined by commas. */
  more: string;
  /** What "changed most" compares the window with; empty: the equal one before it. */
  against: "" | "day" | "week";
}

export const DEFAULTS: PageState = {
  view: "explore",
  type: "cpu",
  query: "",
  from: "now-15m",
  until: "now",
  by: "service",
  baseQuery: "",
  baseFrom: "",
  baseUntil: "",
  normalize: "",
  match: "",
  focus: "",
  frame: "",
  history: "",
  part: "",
  open: "",
  sort: "",
  all: false,
  group: "",
  transform: "",
  runtime_frames: "",
  colour: "",
  theme: "",
  unit: "",
  tz: "local",
  chartFrom: "",
  chartUntil: "",
  layout: "icicle",
  pane: "both",
  rank: "function",
  width: "both",
  graphs: "union",
  only: "",
  measure: "",
  confidence: "",
  lock: false,
  live: false,
  capacity: false,
  markA: "",
  markB: "",
  letter: "A",
  column: "",
  zoom: "",
  box: "",
  hit: "",
  before: "",
  limit: "",
  waits: true,
  wait: "",
  woken: false,
  waker: "",
  least: "",
  most: "",
  row: "",
  ended: false,
  find: "",
  state: "",
  agentVersion: "",
  kernel: "",
  trouble: "",
  agent: "",
  markers: true,
  split: "",
  draw: "stacked",
  apart: false,
  lists: true,
  tab: "",
  more: "",
  against: "",
};

/** What those parameters take that take no other text. */
export const CHOICES: { [K in keyof PageState]?: readonly PageState[K][] } = {
  view: ["explore", "compare", "heatmap", "timeline", "threads", "nodes"],
  normalize: ["", "rate", "share", "absolute"],
  runtime_frames: ["", "show"],
  colour: ["", "kind", "module"],
  theme: ["", "light", "dark"],
  unit: ["", ...UNITS],
  tz: ["local", "utc"],
  layout: ["icicle", "flame"],
  pane: ["both", "graph", "tree", "table"],
  width: ["both", "before", "after"],
  graphs: ["union", "beside"],
  draw: ["stacked", "lines"],
  letter: ["A", "B"],
  only: ["", "significant", "new", "gone"],
  history: ["", "place"],
  split: ["", "version"],
  state: ["", "live", "silent", "replaced", "sender"],
  trouble: ["", "any", "silent", "lost", "limits", "refused", "offline"],
  against: ["", "day", "week"],
  measure: ["", "total", "self"],
  confidence: ["", "0.8", "0.9", "0.99", "0.999"],
};

/** Where the page lives: there is no other one. */
export const HOME = "/";

/**
 * What the address names that the page does not have: another path, or a view by a name that none has; null where it
 * has all.
 */
export function missingIn({ pathname, search }: { pathname: string; search: string }): string | null {
  if (pathname !== HOME && pathname !== "/index.html") return `page ${pathname}`;
  const view = new URLSearchParams(search).get("view");
  const isKnown = view === null || (CHOICES.view as readonly string[]).includes(view);
  return isKnown ? null : `view “${view.slice(0, 40)}”`;
}

/** Parameters of names that mean nothing here, as they stand in an address: another version may know them. */
export function unknownIn(search: string): string {
  const kept = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(search))
    if (!Object.hasOwn(DEFAULTS, name) && kept.toString().length + name.length + value.length < MOST_KEPT)
      kept.append(name, value);
  return kept.toString();
}

/** Characters of what is kept without being known. */
const MOST_KEPT = 1_000;

const KEYS = Object.keys(DEFAULTS) as (keyof PageState)[];

export function readState(search: string): PageState {
  const given = new URLSearchParams(search);
  const state: Record<string, string | boolean> = { ...DEFAULTS };
  for (const key of KEYS) {
    const text = given.get(key);
    if (text === null) continue;
    if (typeof DEFAULTS[key] === "boolean") state[key] = text === "1" || (text !== "0" && (DEFAULTS[key] as boolean));
    else if (CHOICES[key] === undefined || (CHOICES[key] as readonly string[]).includes(text)) state[key] = text;
  }
  return state as unknown as PageState;
}

/** `?a=b&…`, or an empty text where everything has its default. */
export function writeState(state: PageState): string {
  const out = new URLSearchParams();
  for (const key of KEYS) {
    const value = state[key];
    if (value === DEFAULTS[key]) continue;
    out.set(key, typeof value === "boolean" ? (value ? "1" : "0") : value);
  }
  const text = out.toString();
  return text === "" ? "" : `?${text}`;
}
