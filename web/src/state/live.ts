/** How time runs: a clock for "… ago", and questions that are asked again by themselves. */
import { computed, effect, signal } from "@preact/signals";
import { isRelative } from "../logic/time/time.ts";
import { fields, refresh } from "./address/page.ts";
import { flamegraph } from "./answers/explore.ts";
import { pending } from "./question/resource.ts";

const LIVE_MS = 5_000;
const NODES_MS = 5_000;
const AWAITING_MS = 3_000;

const { view, until, live } = fields;

/** Moves each second, for "… ago". */
export const clockNow = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    clockNow.value = Date.now();
  }, 1000);
}

/** A window up to the present that is still empty: what was just started shows up by itself. */
export const awaiting = computed(
  () => view.value === "explore" && isRelative(until.value) && flamegraph.data.value?.samples === 0,
);

export function startLive(): void {
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
}
