/** What the palette can do: views, values of labels, functions, actions. */

import { parseSelector, quote } from "../../logic/labels/selector.ts";
import { UNITS, type UnitChoice } from "../../logic/text/figure.ts";
import type { Item } from "../../logic/text/palette.ts";
import { plainLine } from "../../logic/text/plain.ts";
import { isWait, rateHead, SAMPLES, timeHead } from "../../logic/text/unit.ts";
import { isRelative } from "../../logic/time/time.ts";
import { navigate, page, refresh } from "../../state/address/page.ts";
import { canLookCloser, LOOKED_AT, type LookedAt } from "../../state/moments/closer.ts";
import { compareVersionsOf } from "../../state/moments/said.ts";
import { recent, saved } from "../../state/moments/saved.ts";
import { findFunction, functionsNamed, meantBy } from "../../state/screen/meaning.ts";
import { choosePair, colourPair } from "../../state/screen/pair.ts";
import { theme } from "../../state/screen/theme.ts";
import { changeFor, VIEWS, type View } from "../bar/Header.tsx";
import { lookCloser, openDialog } from "../bar/Help.tsx";
import { actOnValue } from "../chart/valueActions.ts";
import { addressTitle } from "../saved/addressTitle.ts";

export interface Action extends Item {
  run: () => void;
}

const MOST_VALUES = 12;
const TITLE_ROOM = 90;
const MOST_FUNCTIONS = 8;
/** Letters from which on values and functions are looked for. */
export const LEAST_WORD = 2;

/** What else a view is looked for by. */
const VIEW_WORDS: Record<View, string> = {
  explore: "flamegraph chart",
  compare: "difference baseline windows",
  heatmap: "sub-second bursts",
  timeline: "samples in order, preceding",
  threads: "waits off-cpu run queue running waiting lock idle sleeping",
  nodes: "agents machines",
};

const LENGTHS = ["15m", "1h", "6h", "24h", "7d", "30d", "90d"] as const;

/** Views and actions, the most usual first; those that would change nothing are left out. */
export function fixedItems(): Action[] {
  const { view, query, focus, transform, match, until, live, tz, unit, draw, layout, markers } = page.value;
  const act = (title: string, run: () => void, words = ""): Action => ({ kind: "action", title, words, run });
  const when = (is: boolean, action: Action) => (is ? [action] : []);
  const next = theme.value === "dark" ? "light" : "dark";
  const pair = colourPair.value === "red-blue" ? ("orange-blue" as const) : ("red-blue" as const);
  return [
    ...VIEWS.filter(([name]) => name !== view).map(
      ([name, title]): Action => ({
        kind: "view",
        title,
        words: VIEW_WORDS[name],
        run: () => navigate(changeFor(name)),
      }),
    ),
    ...when(
      query !== "",
      act("Show everything", () => navigate({ query: "", focus: "" }), "clear selector filter"),
    ),
    ...when(
      focus !== "",
      act("Clear zoom", () => navigate({ focus: "" }), "show all"),
    ),
    ...when(
      transform !== "",
      act("Undo all changes of the graph", () => navigate({ transform: "", focus: "" })),
    ),
    ...when(
      match !== "",
      act("Clear the search", () => navigate({ match: "" }), "find"),
    ),
    act("Refresh", refresh, "ask again"),
    ...when(
      view !== "nodes",
      act("Compare versions", () => compareVersionsOf(null), "release deploy regression"),
    ),
    ...when(
      view !== "nodes",
      act(markers ? "Hide markers" : "Show markers", () => navigate({ markers: !markers }), "time axis deploys"),
    ),
    ...when(
      isRelative(until) && view !== "compare" && view !== "nodes",
      act(live ? "Stop following the present" : "Live: follow the present", () => navigate({ live: !live })),
    ),
    ...(view === "compare"
      ? []
      : LENGTHS.map((length) =>
          act(
            `Last ${length}`,
            () => navigate({ from: `now-${length}`, until: "now", zoom: "", box: "" }),
            "time range",
          ),
        )),
    act(
      tz === "utc" ? "Times in the browser's zone" : "Times in UTC",
      () => navigate({ tz: tz === "utc" ? "local" : "utc" }),
      "time zone",
    ),
    ...UNITS.filter((one) => one !== (unit || "cores")).map((one) =>
      act(`Numbers in ${unitWord(one)}`, () => navigate({ unit: one }), "unit"),
    ),
    act(
      layout === "icicle" ? "Root at the bottom" : "Root on top",
      () => navigate({ layout: layout === "icicle" ? "flame" : "icicle" }),
      "flame icicle graph",
    ),
    act(draw === "stacked" ? "Chart as lines" : "Chart stacked", () =>
      navigate({ draw: draw === "stacked" ? "lines" : "stacked" }),
    ),
    act(`Switch to ${next} colours`, () => navigate({ theme: next }), "theme dark light"),
    act(
      pair === "orange-blue" ? "Differences in orange and blue" : "Differences in red and blue",
      () => choosePair(pair),
      "colour-blind palette colours",
    ),
    ...when(
      canLookCloser(),
      act("Look closer …", () => lookCloser(selected()), "burst high rate frequency sample node cpu"),
    ),
    act("Saved views", () => openDialog("saved"), "save bookmark recent last named"),
    act("Templates of source links", () => openDialog("sources"), "code repository github gitlab"),
    act("Keys", () => openDialog("help"), "keyboard help shortcuts"),
    act("Print", () => print(), "paper"),
  ];
}

/** What the selector leaves of what a closer look can be of. */
function selected(): LookedAt {
  const matchers = parseSelector(page.peek().query) ?? [];
  const equal = (label: string) => matchers.find((one) => one.label === label && one.operator === "=")?.value ?? "";
  return Object.fromEntries(LOOKED_AT.map((label) => [label, equal(label)]).filter(([, value]) => value !== ""));
}

function unitWord(choice: UnitChoice): string {
  const unit = { ...SAMPLES, isWait: isWait(page.peek().type) };
  return { cores: rateHead(unit), time: timeHead(unit), samples: "samples", share: "%" }[choice];
}

/** Functions that are called like this: of the graph, and of those that the server found others. */
export function functionItems(word: string, found: readonly string[]): Action[] {
  return functionsNamed(word, found, MOST_FUNCTIONS).map(({ name, isElsewhere }) => ({
    kind: isElsewhere ? "function, not in this graph" : "function",
    title: name,
    run: () => findFunction(name),
  }));
}

/**
 * What the server finds: values of all labels that are called like this, of which each narrows the selection and leads
 * the chart on, and names of functions.
 */
export async function foundItems(
  word: string,
  signal: AbortSignal,
): Promise<{ values: Action[]; functions: string[] }> {
  const { values, functions } = await meantBy(word, MOST_VALUES, signal);
  const items = values.map(({ label, value }) => ({
    kind: "value",
    title: `${label}=${quote(value)}`,
    run: () => actOnValue(label, value, "only"),
  }));
  return { values: items, functions };
}

/** Views with names, and what was looked at last. */
export function savedItems(): Action[] {
  const item = (kind: string, title: string, address: string, words = ""): Action => ({
    kind,
    title,
    words,
    run: () => location.assign(address),
  });
  return [
    ...(saved.value?.views ?? []).map(({ name, address }) =>
      item("saved view", plainLine(name, TITLE_ROOM), address, addressTitle(address)),
    ),
    ...recent().map(({ address }) => item("looked at last", addressTitle(address), address)),
  ];
}
