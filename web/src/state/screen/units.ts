/** The units of what is on the screen: of the tree and its tables, and of the chart. */
import { computed } from "@preact/signals";
import { sideFigure, sumsOfSides, type Told } from "../../logic/compare/norm.ts";
import { bothText } from "../../logic/compare/sideNames.ts";
import { measureOf } from "../../logic/graph/measure.ts";
import {
  besideOf,
  figureHead,
  figureText,
  figureWords,
  type Scale,
  scaled,
  scaleOf,
  type UnitChoice,
  type Worth,
} from "../../logic/text/figure.ts";
import { brief, count, duration } from "../../logic/text/format.ts";
import {
  amountHead,
  amountShort,
  amountText,
  rateHead,
  rateShort,
  rateText,
  SAMPLES,
  timeWords,
  type Unit,
  unitOf,
} from "../../logic/text/unit.ts";
import { fields } from "../address/page.ts";
import { compareSeries, compareStack, comparing, diff, sideNames } from "../answers/compare.ts";
import { exploreSeries, flamegraph, sampled } from "../answers/explore.ts";
import { exploreStack } from "../answers/lists.ts";

/** What numbers of one window are told in, and levels of charts. */
export const unitChoice = computed<UnitChoice>(() => fields.unit.value || "cores");

const beforeHits = () => sampled.value?.beforeHits.data.value ?? null;

/** Of the tree: one window's, or side B's in a comparison. */
export const counted = computed<Unit>(() => {
  if (fields.view.value === "timeline") return unitOf(beforeHits());
  if (!comparing.value) return unitOf(flamegraph.data.value);
  const answer = diff.data.value;
  return answer === null ? SAMPLES : unitOf({ unit: "samples", ...answer.comparison, type: answer.type });
});

/** Of the chart. */
export const charted = computed<Unit>(() =>
  unitOf(fields.view.value === "compare" ? compareSeries.data.value : exploreSeries.data.value),
);

/** What the levels of the chart are multiplied by; null for cores. */
export const chartScale = computed<Scale | null>(() => {
  const isCompare = fields.view.value === "compare";
  const answer = (isCompare ? compareSeries : exploreSeries).data.value;
  const stack = (isCompare ? compareStack : exploreStack).value;
  if (answer === null || stack === null) return null;
  const seconds = stack.layers.reduce((sum, { amount }) => sum + amount, 0) / 1e9;
  const samples = stack.layers.reduce((sum, layer) => sum + layer.samples, 0);
  // What waits is no part of the CPUs.
  const capacity = charted.value.isWait ? 0 : stack.meanCapacity;
  return scaleOf(unitChoice.value, charted.value.isTime, seconds > 0 ? samples / seconds : 0, capacity);
});

/** A level of the chart, with and without its unit. */
export const level = (value: number) =>
  charted.value.isTime ? scaled(value, chartScale.value) : rateShort(value, charted.value);
export const levelIn = (value: number) =>
  chartScale.value === null ? rateText(value, charted.value) : `${level(value)} ${chartScale.value.unit}`;
export const levelTitle = () => chartScale.value?.unit ?? rateHead(charted.value);

/** What a layer is over the whole chart, in the unit that was chosen; its share stands beside it. */
export function layerFigure({ mean, amount, samples }: { mean: number; amount: number; samples: number }): string {
  if (charted.value.isTime && unitChoice.value === "time") return duration(amount / 1e9);
  if (charted.value.isTime && unitChoice.value === "samples") return brief(samples);
  return rateShort(mean, charted.value);
}

/** What a sample of the window's tree stands for. */
const worth = computed<Worth>(() => {
  const answer = fields.view.value === "timeline" ? beforeHits() : flamegraph.data.value;
  const unit = counted.value;
  if (answer === null) return { secondsPerSample: 0, coresPerSample: 0, samples: 0, unit };
  return { ...measureOf("", answer), samples: answer.samples, unit };
});

/** Samples of one window in the unit that was chosen, and in the one that stands beside it. */
export const figure = (samples: number) => figureText(samples, unitChoice.value, worth.value);
export const figureTitle = () => figureHead(unitChoice.value, counted.value);
export const besideFigure = (samples: number, choice: UnitChoice = besideOf(unitChoice.value)) =>
  figureText(samples, choice, worth.value);

/** What numbers of a comparison are told in. */
export const told = computed<Told>(() => {
  const answer = diff.data.value;
  const [unit, choice] = [counted.value, fields.unit.value];
  return { normalize: answer?.normalize ?? null, unit, choice, sums: answer === null ? null : sumsOfSides(answer) };
});

/** Samples of both sides of a comparison, in the unit that was chosen: `0.3 → 0.5`. */
export const bothFigures = (before: number, after: number) =>
  bothText(sideFigure(before, 0, told.value), sideFigure(after, 1, told.value), sideNames.value);

/** What a sentence says of samples: how much they are in the unit that was chosen, and how many. */
export function inWords(samples: number): string {
  const choice = sentenceUnit();
  return `${choice === null ? "" : `${figureWords(samples, choice, worth.value)}, `}${amount(samples)}`;
}

/** The same of both sides of a comparison. */
export function bothInWords(before: number, after: number): string {
  const choice = sentenceUnit();
  const counts = counted.value.name === "samples" ? count(before) : amountIn(before);
  const head = choice === "time" ? timeWords(counted.value) : figureHead(choice ?? "samples", counted.value);
  const samples = bothText(counts, amount(after), sideNames.value);
  return choice === null ? samples : `${bothFigures(before, after)} ${head}, ${samples}`;
}

/** The unit beside samples; null where they say it all, or a share that stands there anyway. */
function sentenceUnit(): "cores" | "time" | null {
  const choice = unitChoice.value;
  if (choice === "cores") return choice;
  return choice === "time" && counted.value.isTime && counted.value.name === "samples" ? choice : null;
}

/** A level of the selected frame's history: in the unit of the chart, where the view has one. */
export const historyLevel = (value: number) => (chartScale.value === null ? rate(value) : levelIn(value));

export const amount = (value: number) => amountText(value, counted.value);
export const amountIn = (value: number) => amountShort(value, counted.value);
export const amountTitle = () => amountHead(counted.value);
export const rate = (value: number) => rateText(value, counted.value);
export const rateTitle = () => rateHead(counted.value);
