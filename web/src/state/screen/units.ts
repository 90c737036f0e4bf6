/** The units of what is on the screen: of the tree and its tables, and of the chart. */
import { computed } from "@preact/signals";
import {
  amountHead,
  amountShort,
  amountText,
  rateHead,
  rateShort,
  rateText,
  SAMPLES,
  type Unit,
  unitOf,
} from "../../logic/text/unit.ts";
import { fields } from "../address/page.ts";
import { compareSeries, comparing, diff } from "../answers/compare.ts";
import { exploreSeries, flamegraph } from "../answers/explore.ts";
import { beforeHits } from "../answers/timeline.ts";

/** Of the tree: one window's, or side B's in a comparison. */
export const counted = computed<Unit>(() => {
  if (fields.view.value === "timeline") return unitOf(beforeHits.data.value);
  if (!comparing.value) return unitOf(flamegraph.data.value);
  const { comparison = null } = diff.data.value ?? {};
  return comparison === null ? SAMPLES : unitOf({ unit: "samples", ...comparison });
});

/** Of the chart. */
export const charted = computed<Unit>(() =>
  unitOf(fields.view.value === "compare" ? compareSeries.data.value : exploreSeries.data.value),
);

/** A level of the chart, with and without its unit. */
export const levelIn = (value: number) => rateText(value, charted.value);
export const level = (value: number) => rateShort(value, charted.value);
export const levelTitle = () => rateHead(charted.value);

export const amount = (value: number) => amountText(value, counted.value);
export const amountIn = (value: number) => amountShort(value, counted.value);
export const amountTitle = () => amountHead(counted.value);
export const rate = (value: number) => rateText(value, counted.value);
export const rateTitle = () => rateHead(counted.value);
