/**
 * The tree on the screen. In: the newest answer with a tree, and what the address says is done to it. Out: the tree as
 * it was sent and as it is shown, and which frame is zoomed. What changes trees is fetched when a change is wanted.
 * Large trees are changed in slices of time, between which the page answers to hands.
 */
import { computed, effect, signal } from "@preact/signals";
import { transformsOf } from "../../logic/transform/list.ts";
import type { Transformed } from "../../logic/transform/transform.ts";
import { findFocus } from "../../logic/tree/focus.ts";
import { inSlices } from "../../logic/tree/slices.ts";
import { ROOT, type Tree, withWidth } from "../../logic/tree/tree.ts";
import { fields, navigate } from "../address/page.ts";
import { comparing, diff } from "../answers/compare.ts";
import { flamegraph, sampled, single } from "../answers/explore.ts";
import { lazyFile } from "../lazyFile.ts";
import { announce } from "../question/resource.ts";
import { nextSlice } from "./slices.ts";

const { view, width } = fields;

/** Which answer has the tree; null where none does. */
const source = computed(() =>
  comparing.value ? diff : view.value === "timeline" ? (sampled.value?.beforeHits ?? null) : flamegraph,
);

/** The tree as the server sent it, or why there is none. */
export const sent = computed<{ tree: Tree | null; fault: string }>(() => {
  const answer = source.value === flamegraph && single.value === null ? null : (source.value?.data.value ?? null);
  if (answer === null) return { tree: null, fault: "" };
  const { tree: whole, fault } = answer;
  return { tree: whole === null ? null : withWidth(whole, width.value), fault };
});

/** The tree is of an earlier question, and so is what is told of it. */
export const isTreeStale = computed(() => source.value?.stale.value ?? false);

/** What the tree is of, at whatever time, and what is done to it. */
export const treeSubject = computed(() => `${source.value?.subject.value ?? ""} ${fields.transform.value}`);

export const transforms = computed(() => transformsOf(fields.transform.value));

/** Whoever expects a change fetches it before the first one is wanted. */
export const transformFile = lazyFile(() => import("../../logic/transform/transform.ts"));

/** Trees of so many frames are changed in slices: a million take a second and more. */
const LARGE = 100_000;
/** Milliseconds of a slice. */
const SLICE_MS = 12;

const wantedChange = computed(() => ({ tree: sent.value.tree, list: transforms.value }));

/** Changes of large trees that are done, and how many there were. */
const made = new WeakMap<typeof wantedChange.value, Transformed>();
const done = signal(0);

/** A tree is being changed: until then, what was there before stays. */
export const changing = computed(() => {
  void done.value;
  const { tree, list } = wantedChange.value;
  if (tree === null || list.length === 0 || made.has(wantedChange.value)) return false;
  return transformFile.content.value === null || tree.size >= LARGE;
});

let newestChange: Transformed | null = null;
let settledText = "";

function changeNow(): Transformed | null {
  const { tree, list } = wantedChange.value;
  if (tree === null) return null;
  if (list.length === 0) return { tree, upright: tree, missing: [] };
  return made.get(wantedChange.value) ?? transformFile.content.value?.transformed(tree, list) ?? null;
}

const changed = computed(() => {
  if (changing.value) return newestChange;
  newestChange = changeNow();
  settledText = fields.transform.peek();
  return newestChange;
});

export function startChanges(): void {
  effect(() => {
    if (transforms.value.length > 0) transformFile.load();
  });
  effect(() => {
    const wanted = wantedChange.value;
    if (!changing.value || wanted.tree === null || transformFile.failed.value) return;
    let isWanted = true;
    let since = performance.now();
    const rest = () =>
      performance.now() - since < SLICE_MS ||
      nextSlice().then(() => {
        since = performance.now();
        return isWanted;
      });
    // What was there before; or the tree as it was sent, where another window is changed in the same way.
    const cancel = () => navigate({ transform: fields.transform.peek() === settledText ? "" : settledText, focus: "" });
    const ended = announce({ name: "changing the graph", since: Date.now(), cancel });
    const steps = transformFile.content.value?.transforming(wanted.tree, wanted.list);
    if (steps !== undefined)
      void inSlices(steps, rest).then((change) => {
        if (change === null || !isWanted) return;
        made.set(wanted, change);
        done.value++;
      });
    return () => {
      isWanted = false;
      ended();
    };
  });
}

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
