/** What is asked about the selected frame. */
import { computed, effect, signal } from "@preact/signals";
import { api } from "../api/index.ts";
import { type FrameKey, placesOf, placesQuery } from "../logic/places.ts";
import { exactPattern, serverPattern } from "../logic/search.ts";
import { parseTime } from "../logic/time.ts";
import { frameName, kindName, moduleName } from "../logic/tree.ts";
import { ask, pair, present, selected, tree } from "./data.ts";
import { page } from "./index.ts";
import { resource } from "./resource.ts";

/** The function of the selected frame, once the selection rests: what is asked about it follows no held key. */
const SETTLED_MS = 200;
const settled = signal<FrameKey | null>(null);

effect(() => {
  const [shown, node] = [tree.value.tree, selected.value];
  const kind = shown === null || node === null ? "root" : kindName(shown, node);
  const isFunction = kind !== "root" && kind !== "trimmed";
  const key =
    shown !== null && node !== null && isFunction
      ? { name: frameName(shown, node), module: moduleName(shown, node), kind }
      : null;
  const timer = setTimeout(() => {
    settled.value = key;
  }, SETTLED_MS);
  return () => clearTimeout(timer);
});

/** What the charts of the view show. */
const chartRange = computed<{ from: string | number; until: string | number }>(() => {
  const { view, from, until } = page.value;
  return view === "compare" ? pair.value.chart : { from, until };
});

/** Cores of the stacks through the selected function, in user mode and in the kernel: since when? */
export const frameSeries = resource(() => {
  const key = settled.value;
  if (key === null) return null;
  const parameters = {
    type: page.value.type,
    query: page.value.query,
    ...chartRange.value,
    by: "mode",
    match: serverPattern(exactPattern(key.name)),
  };
  return ask("frame", parameters, (signal) => api.series(parameters, signal));
});

/** Which files, build ids and source lines the selected function has. */
export const framePlaces = resource(() => {
  const key = settled.value;
  if (key === null) return null;
  const { from: begin, until: end } = chartRange.value;
  const day = (text: string | number) => parseTime(String(text), present.peek()) ?? present.peek();
  const sql = placesQuery(key, day(begin), day(end));
  return ask(`places ${key.module}`, { sql }, async (signal) =>
    placesOf((await api.sql(sql, signal)).rows, key.module),
  );
});
