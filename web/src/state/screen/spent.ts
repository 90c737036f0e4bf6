/**
 * Whose time it is: the values of labels by the CPU time of the samples of the selected frame, else of what is searched
 * for, else of all; of a comparison on both sides.
 */
import { computed, effect, signal } from "@preact/signals";
import { api, type Parameters } from "../../api/index.ts";
import { spentOf } from "../../logic/graph/spentOf.ts";
import { withMatchers } from "../../logic/labels/selector.ts";
import { fields } from "../address/page.ts";
import { comparing, isPaired, pairParameters } from "../answers/compare.ts";
import { single } from "../answers/explore.ts";
import { type Facets, facetsBy } from "../answers/facets.ts";
import { ask } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { selectedRows, settledKey, startFrame } from "./frame.ts";

export const SPENT_LABELS = ["service", "pod", "container", "process", "thread", "node"] as const;
export type SpentLabel = (typeof SPENT_LABELS)[number];
/** Values of a list; of two sides more are asked for, since their largest values may be others. */
export const MOST_SPENT = 6;
const MOST_OF_SIDE = 100;

/** The one window, or side B of a comparison. */
const subject = computed<Parameters | null>(() => {
  if (fields.tab.value !== "spent") return null;
  if (!comparing.value) return single.value;
  if (!isPaired.value) return null;
  const { type, query, from, until, except_from, except_until, min_wait, max_wait, runtime_frames } = pairParameters();
  return { type, query, from, until, except_from, except_until, min_wait, max_wait, runtime_frames };
});

/** Side A of a comparison; null where one window is looked at. */
const baseSubject = computed<Parameters | null>(() => {
  if (fields.tab.value !== "spent" || !comparing.value || !isPaired.value) return null;
  const { type, query, ...pair } = pairParameters();
  return {
    type,
    query: pair.base_query || query,
    from: pair.base_from,
    until: pair.base_until,
    except_from: pair.base_except_from,
    except_until: pair.base_except_until,
    min_wait: pair.min_wait,
    max_wait: pair.max_wait,
    runtime_frames: pair.runtime_frames,
  };
});

/** A search that is typed asks once it rests. */
const SETTLED_MS = 300;
const settledSearch = signal("");

/** What is asked for. */
export const spentSubject = computed(() => spentOf(settledKey.value, settledSearch.value));

/** What is asked for is not yet what is chosen. */
export const isSpentStale = computed(
  () =>
    spent.stale.value ||
    (comparing.value && spentBefore.stale.value) ||
    (settledKey.value === null && settledSearch.value !== fields.match.value),
);

/** The same tables by themselves: of a window with a part left out, which is asked of one label at a time. */
async function tablesBy(labels: readonly string[], parameters: Parameters, signal: AbortSignal): Promise<Facets> {
  const tables = labels.map(async (by) => [by, { by, top: await api.ranking({ ...parameters, by }, signal) }] as const);
  return Object.fromEntries(await Promise.all(tables));
}

function spentBy(name: string, of: () => Parameters | null): Resource<Facets> {
  return resource(() => {
    const asked = of();
    if (asked === null) return null;
    const { match } = spentSubject.value;
    const query = withMatchers(String(asked.query ?? ""), selectedRows.value);
    const limit = comparing.value ? MOST_OF_SIDE : MOST_SPENT;
    const parameters = { ...asked, query, limit, ...match };
    // A mark against the rest of its range leaves a part out.
    const isWhole = asked.except_from === undefined;
    return ask(name, parameters, (signal) =>
      isWhole
        ? facetsBy(SPENT_LABELS, { ...parameters, parts: "top" }, signal)
        : tablesBy(SPENT_LABELS, parameters, signal),
    );
  });
}

export const spent = spentBy("spent by", () => subject.value);
export const spentBefore = spentBy("spent by of A", () => baseSubject.value);

export function startBeside(): void {
  startFrame();
  settledSearch.value = fields.match.peek();
  effect(() => {
    const text = fields.match.value;
    const timer = setTimeout(() => {
      settledSearch.value = text;
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  });
  spent.start();
  spentBefore.start();
}
