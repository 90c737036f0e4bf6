/** What a picture is of, so that it tells on its own. In: an answer and how it is looked at. Out: titles and texts. */
import type { DiffAnswer, DiffSide, Exposure, FlamegraphAnswer, Quality } from "../../api/types.ts";
import { gapsOf, missedOf } from "../agents/loss.ts";
import { count, duration, levelText, percent, plural } from "../text/format.ts";
import { plainLine } from "../text/plain.ts";
import { rateHead, timeText, unitOf } from "../text/unit.ts";
import { dateText, type Window, zoneText } from "../time/time.ts";

/** An answer without its columns, which a parsed one has as a tree. */
type Sums<Answer> = Omit<Answer, "nodes" | "strings" | "kinds" | "languages">;

export type Fact = readonly [title: string, text: string];

const ROOM = 400;

/** `2026-11-27 14:00:00 to 14:15:00 UTC+1 (2026-11-27T13:00:00.000Z to …)`: in the page's zone and in UTC. */
export function windowText(window: Window): string {
  const { from, until } = window;
  const iso = (moment: number) => new Date(moment).toISOString();
  const length = duration((until - from) / 1000);
  return `${dateText(from)} to ${dateText(until)} ${zoneText(window)}, ${length} (${iso(from)} to ${iso(until)})`;
}

function exposureText(exposure: Exposure, window: Window): string {
  const gaps = gapsOf(exposure, window);
  const share = exposure.node_share ?? 1;
  const missed = missedOf(exposure);
  return [
    plural(exposure.nodes, "node"),
    `${duration(exposure.observed_cpu_seconds)} of CPU time observed`,
    ...(share < 1 ? [`nodes covered for ${percent(share)} of it`] : []),
    ...(gaps.all > 0 ? [`coverage gaps of ${duration(gaps.all / 1000)}`] : []),
    ...(missed > 0 ? [`no timer ticks for ${percent(missed)}`] : []),
  ].join(", ");
}

function qualityText({ complete_samples, truncated_samples, unnamed_samples, lost }: Quality): string {
  const losses = Object.entries(lost).filter(([, samples]) => samples > 0);
  return [
    `${count(complete_samples)} complete`,
    `${count(truncated_samples)} truncated`,
    `${count(unnamed_samples)} unsymbolized`,
    losses.length === 0 ? "none lost" : `lost: ${losses.map(([why, n]) => `${why} ${count(n)}`).join(", ")}`,
  ].join(", ");
}

function samplesText(
  { samples, cpu_seconds: seconds, cores }: Pick<DiffSide, "samples" | "cpu_seconds" | "cores">,
  type: string,
): string {
  const unit = unitOf({ unit: "samples", type });
  return [
    plural(samples, "sample"),
    ...(seconds === null ? [] : [timeText(seconds, unit)]),
    ...(cores === null ? [] : [`${Number(cores.toPrecision(3))} ${rateHead(unit)}`]),
  ].join(", ");
}

export function factsOfWindow(answer: Sums<FlamegraphAnswer>): Fact[] {
  return [
    ["Selector", plainLine(answer.query, ROOM)],
    ["Window", windowText(answer)],
    ["Type", plainLine(answer.type, ROOM)],
    ["Samples", samplesText(answer, answer.type)],
    ["Observed", exposureText(answer.exposure, answer)],
    ["Stacks", qualityText(answer.quality)],
  ];
}

/** A file has the waits' graph alone: where who ended them stands above it on the page, it says so. */
export function factsOfWoken({ woken, type, pane }: { woken: boolean; type: string; pane: string }): Fact[] {
  const isAbove = woken && type === "off_cpu" && (pane === "both" || pane === "graph");
  return isAbove ? [["Left out", "the graph above: who ended these waits"]] : [];
}

/** Of what ran shortly before samples with what was looked for. */
export function factsOfPreceding(answer: Sums<FlamegraphAnswer>, beforeMs: number, sought: string): Fact[] {
  const what = `on the same CPU, up to ${duration(beforeMs / 1000)} before samples with ${plainLine(sought, ROOM)}`;
  return [["Preceding samples", `${what}; each counts once`], ...factsOfWindow(answer)];
}

function factsOfSide(letter: string, side: DiffSide, type: string): Fact[] {
  return [
    [`${letter}: selector`, plainLine(side.query, ROOM)],
    [`${letter}: window`, windowText(side)],
    [`${letter}: samples`, samplesText(side, type)],
    [`${letter}: observed`, exposureText(side.exposure, side)],
    [`${letter}: stacks`, qualityText(side.quality)],
  ];
}

export function factsOfPair(answer: Sums<DiffAnswer>): Fact[] {
  const { significant, tested } = answer;
  const found =
    significant === 0 ? "no significant change" : `${count(significant)} of ${plural(tested, "frame")} changed`;
  return [
    ["Type", plainLine(answer.type, ROOM)],
    ...factsOfSide("A", answer.base, answer.type),
    ...factsOfSide("B", answer.comparison, answer.type),
    [
      "Judged",
      `by ${answer.normalize}, ${answer.measure}; ${found}; ${levelText(answer.confidence)} CI; ` +
        `false discovery rate ${percent(answer.false_discovery_rate)}`,
    ],
  ];
}
