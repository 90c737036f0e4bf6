/** What is asked about the selected frame. */
import { computed, effect, signal } from "@preact/signals";
import { api } from "../../api/index.ts";
import { type LabelMatcher, withMatchers } from "../../logic/labels/selector.ts";
import { parseTime } from "../../logic/time/time.ts";
import { type FrameKey, isSameFunction } from "../../logic/tree/frameKey.ts";
import { type FrameMatch, matchOf, pathMatchOf } from "../../logic/tree/frameMatch.ts";
import { placesOf, placesQuery } from "../../logic/tree/places.ts";
import { isNoFunction, isRow, rowMatchers } from "../../logic/tree/rows.ts";
import { frameName, kindName, moduleName } from "../../logic/tree/tree.ts";
import { fields, page } from "../address/page.ts";
import { pair } from "../answers/compare.ts";
import { ask, lengths, ownFrames, present } from "../question/question.ts";
import { resource } from "../question/resource.ts";
import { selected } from "./selection.ts";
import { transforms, tree } from "./tree.ts";

/** What is asked for of the selected frame. */
interface Asked {
  key: FrameKey;
  /** At its place; null where the graph shows stacks in another way than they were taken, or the way is too long. */
  path: FrameMatch | null;
  /** Its rows: one place below others is another. */
  rows: readonly LabelMatcher[];
}

/** The selected frame, once the selection rests: what is asked about it follows no held key. */
const SETTLED_MS = 200;
const settled = signal<Asked | null>(null);

/** The function of the selected frame; null for none, and for what stands for many. */
const chosen = computed<FrameKey | null>(() => {
  const [shown, node] = [tree.value.tree, selected.value];
  const kind = shown === null || node === null ? "root" : kindName(shown, node);
  if (shown === null || node === null || isNoFunction(kind)) return null;
  return { name: frameName(shown, node), module: moduleName(shown, node), kind };
});

/** What the charts of the view show. */
const chartRange = computed<{ from: string | number; until: string | number }>(() => {
  const { view, from, until } = page.value;
  return view === "compare" ? pair.value.chart : { from, until };
});

/** The function of the selected frame, once the selection rests. */
export const settledKey = computed<FrameKey | null>(() => settled.value?.key ?? null);

/** By what the server finds the selected frame: its function, or its place where the history is of that. */
export const settledPlace = computed<{ match: FrameMatch; query: string } | null>(() => {
  const asked = settled.value;
  const { query, history } = page.value;
  if (asked === null) return null;
  if (history !== "place" || asked.path === null) return { match: matchOf(asked.key), query };
  return { match: asked.path, query: withMatchers(query, asked.rows) };
});

/** Values of the selected row of labels, and of those above it; none where a frame is selected. */
export const selectedRows = computed<readonly LabelMatcher[]>(() => {
  const [shown, node] = [tree.value.tree, selected.value];
  return shown !== null && node !== null && isRow(shown, node) ? rowMatchers(shown, node) : [];
});

/** Whether the selected frame can be asked for at its place. */
export const hasPlace = computed(() => settled.value !== null && settled.value.path !== null);

/**
 * Cores of the stacks through the selected frame, in user mode and in the kernel: since when? Of its function, or of
 * this one place.
 */
const history = resource(() => {
  const asked = settled.value;
  const place = settledPlace.value;
  if (asked === null || place === null) return null;
  const { match, query } = place;
  const parameters = {
    type: page.value.type,
    query,
    ...chartRange.value,
    by: "mode",
    ...match,
    ...lengths.value,
    ...ownFrames.value,
  };
  return ask("frame", parameters, async (signal) => ({ asked, answer: await api.series(parameters, signal) }));
});

/** What was asked of another frame is no history of this one. */
export const frameSeries = {
  data: computed(() => {
    const known = history.data.value;
    if (known === null || !isOfChosen(known.asked.key)) return null;
    const isThere = fields.history.value !== "place" || isSamePlace(known.asked, settled.value);
    return isThere ? known.answer : null;
  }),
  error: computed(() => (isSettled.value ? history.error.value : null)),
};

/** What is asked is asked of the selected frame. */
export const isSettled = computed(() => isOfChosen(settled.value?.key));

/** What was asked of another frame is nothing of the selected one. */
function isOfChosen(key: FrameKey | undefined): boolean {
  return key !== undefined && chosen.value !== null && isSameFunction(key, chosen.value);
}

function isSamePlace(a: Asked, b: Asked | null): boolean {
  return JSON.stringify([a.path, a.rows]) === JSON.stringify([b?.path ?? null, b?.rows ?? []]);
}

/** Which files, build ids and source lines the selected function has. */
const placesAsked = resource(() => {
  if (settled.value === null) return null;
  const { key } = settled.value;
  const { from: begin, until: end } = chartRange.value;
  const day = (text: string | number) => parseTime(String(text), present.peek()) ?? present.peek();
  const sql = placesQuery(key, day(begin), day(end));
  return ask(`places ${key.module}`, { sql }, async (signal) => ({
    key,
    places: placesOf((await api.sql(sql, signal)).rows, key.module),
  }));
});

/** Null until those of the very function are known. */
export const framePlaces = computed(() => {
  const known = placesAsked.data.value;
  return known !== null && isOfChosen(known.key) ? known : null;
});

export function startFrame(): void {
  effect(() => {
    const [key, shown, node] = [chosen.value, tree.value.tree, selected.value];
    const isPlace = shown !== null && node !== null && transforms.value.length === 0;
    const asked =
      key === null
        ? null
        : { key, path: isPlace ? pathMatchOf(shown, node) : null, rows: isPlace ? rowMatchers(shown, node) : [] };
    const timer = setTimeout(() => {
      settled.value = asked;
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  });
  history.start();
  placesAsked.start();
}
