/** The hues of differences, as this browser keeps them: who sees no red sees none in the links of others either. */
import { effect, type ReadonlySignal, signal } from "@preact/signals";
import type { Pair } from "../../logic/colour.ts";
import { keep, kept } from "./kept.ts";

const KEPT = "difference-colours";
const chosen = signal<Pair>("red-blue");

export const colourPair: ReadonlySignal<Pair> = chosen;

export function choosePair(pair: Pair): void {
  chosen.value = pair;
  keep(KEPT, pair);
}

export function startPair(): void {
  if (kept(KEPT) === "orange-blue") chosen.value = "orange-blue";
  effect(() => {
    document.documentElement.dataset.pair = chosen.value;
  });
}
