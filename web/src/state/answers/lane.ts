/** The samples of the timeline as they are drawn, and which CPU they are of where nobody chose one. */
import { computed, effect, signal } from "@preact/signals";
import { api } from "../../api/index.ts";
import { type Chart, chartOf, reaching } from "../../logic/flame/timeline.ts";
import { withMatcher } from "../../logic/labels/selector.ts";
import { isWait } from "../../logic/text/unit.ts";
import { BadTree } from "../../logic/tree/tree.ts";
import { apart, type WaitLane, waitLanes } from "../../logic/waits/lanes.ts";
import { fields } from "../address/page.ts";
import { ask } from "../question/question.ts";
import { resource } from "../question/resource.ts";
import { hasLane, isLaneOpened, openedLane, startTimeline, timeline } from "./timeline.ts";

interface Drawn {
  chart: Chart | null;
  /** Waits of the same threads, or on the same CPU. */
  lanes: WaitLane[];
  fault: string;
}

/** The samples as a flame chart, and waits beside them, or what is wrong with them. */
export const chart = computed<Drawn>(() => {
  const answer = timeline.data.value;
  if (answer === null) return { chart: null, lanes: [], fault: "" };
  try {
    const { own, waits } = apart(answer);
    const last = answer.samples.offset_ns.at(-1) ?? 0;
    return { chart: reaching(chartOf(own), last), lanes: waitLanes(waits), fault: "" };
  } catch (error) {
    if (error instanceof BadTree) return { chart: null, lanes: [], fault: error.message };
    throw error;
  }
});

/** Somebody's lane was open since the view was: without one, they left it to choose another. */
const wasOpen = signal(false);

const isWanted = computed(
  () =>
    fields.view.value === "timeline" &&
    !hasLane.value &&
    !isLaneOpened.value &&
    fields.hit.value === "" &&
    !wasOpen.value,
);

/** The selection on the CPU where it ran most, on the node where it ran most; null where it did not run. */
const busiest = resource(() => {
  if (!isWanted.value) return null;
  const type = isWait(fields.type.value) ? "cpu" : fields.type.value;
  const [query, from, until] = [fields.query.value, fields.from.value, fields.until.value];
  return ask("the busiest CPU", { type, query, from, until }, async (aborted) => {
    // Samples of senders that tell no CPU have no lane, however many they are.
    const most = async (by: string, of: string) => {
      const onCpus = withMatcher(of, { label: "cpu", operator: "!=", value: "" });
      return (await api.ranking({ type, query: onCpus, from, until, by, limit: 2 }, aborted)).rows;
    };
    const [node, ...others] = await most("node", query);
    if (node === undefined) return { query, lane: null };
    const there = others.length === 0 ? query : withMatcher(query, { label: "node", operator: "=", value: node.name });
    const [cpu] = await most("cpu", there);
    if (cpu === undefined) return { query, lane: null };
    return { query, lane: withMatcher(there, { label: "cpu", operator: "=", value: cpu.name }) };
  });
});

/** The lane is about to be opened. */
export const isOpening = computed(() => isWanted.value && busiest.loading.value);

export function startLane(): void {
  startTimeline();
  effect(() => {
    if (fields.view.value !== "timeline") {
      wasOpen.value = false;
      openedLane.value = null;
    } else if (hasLane.value) {
      wasOpen.value = true;
      openedLane.value = null;
    }
  });
  busiest.start();
  effect(() => {
    const found = busiest.data.value;
    if (isWanted.value && found !== null && found.lane !== null && found.query === fields.query.value)
      openedLane.value = { query: found.query, lane: found.lane };
  });
}
