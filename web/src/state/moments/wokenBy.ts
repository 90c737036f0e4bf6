/** Who ended the waits of the graph, of its zoomed frame: asked for while it is shown. */
import { computed } from "@preact/signals";
import { api, type Parameters } from "../../api/index.ts";
import { withMatchers } from "../../logic/labels/selector.ts";
import type { ParsedFlamegraph } from "../../logic/tree/answer.ts";
import { findFocus } from "../../logic/tree/focus.ts";
import { ROOT } from "../../logic/tree/tree.ts";
import { WAITED } from "../../logic/waits/wakers.ts";
import { WAKER_ROWS, type WokenOf, wokenOf } from "../../logic/waits/wokenGraph.ts";
import { fields } from "../address/page.ts";
import { flamegraph, single } from "../answers/explore.ts";
import { parse } from "../question/parsing.ts";
import { ask, MIN_SHARE } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { focus, idleTransforms, transforms, tree } from "../screen/tree.ts";

/** Whether there is a graph that another one can stand above. */
export const hasGraph = computed(() => fields.pane.value === "both" || fields.pane.value === "graph");

/** Of which waits; null where the graph is of none, or wakers are not shown. */
const subjectNow = computed<WokenOf | null>(() => {
  const shown = tree.value.tree;
  if (!fields.woken.value || !hasGraph.value || fields.type.value !== WAITED || shown === null) return null;
  // What found nothing to do leaves all stacks, and frames at their places.
  const done = transforms.value.filter((one) => !idleTransforms.value.includes(one));
  return wokenOf(shown, focus.value.node, done);
});

/** Who ended which waits. */
export interface WokenBy {
  subject: WokenOf;
  graph: ParsedFlamegraph;
}

/** As the server is asked for it, in whatever form. */
export const wokenAsked = computed<{ subject: WokenOf; parameters: Parameters } | null>(() => {
  const [subject, waits, selected] = [subjectNow.value, flamegraph.data.value, single.value];
  // A frame of an earlier answer need not be in the one that comes.
  if (subject === null || waits === null || selected === null || flamegraph.stale.value) return null;
  const parameters = {
    ...selected,
    query: withMatchers(String(selected.query ?? ""), subject.rows),
    // The very window of the graph below, whatever is now meanwhile.
    from: waits.from,
    until: waits.until,
    stacks: "wakers",
    group: WAKER_ROWS,
    ...subject.match,
  };
  return { subject, parameters };
});

export const wokenBy: Resource<WokenBy> = resource(() => {
  if (wokenAsked.value === null) return null;
  const { subject } = wokenAsked.value;
  const parameters = { ...wokenAsked.value.parameters, min_share: MIN_SHARE };
  // The answer is told by its subject: two of them may ask the server for the same.
  const question = { ...parameters, of: `${subject.name} ${subject.isWider}` };
  return ask("who ended the waits", question, async (signal) => ({
    subject,
    graph: await parse("flamegraph", await api.flamegraph(parameters, signal), signal),
  }));
});

/** The zoomed frame of that graph; the root where it has none of the name. */
export const wakerFocus = computed(() => {
  const shown = wokenBy.data.value?.graph.tree ?? null;
  return shown === null ? ROOT : (findFocus(shown, fields.waker.value) ?? ROOT);
});
