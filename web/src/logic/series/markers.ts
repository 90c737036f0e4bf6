/**
 * Moments on a time axis. In: markers in any order, counts of older ones, and where the axis lies. Out: groups that
 * stand so far apart that each can be hit, in the order of time. The cost follows the number of markers once, whatever
 * their density.
 */
import type { Marker, MarkerKind, OlderMarkers } from "../../api/types.ts";
import { count } from "../text/format.ts";
import { lengthOf, ordered, type Window } from "../time/windows.ts";

export type KindCounts = Record<MarkerKind, number>;

export interface MarkerGroup extends Window {
  /** Pixels from the axis's beginning. */
  x: number;
  /** Those that are told, in the order of time. */
  markers: Marker[];
  /** How many there are with those that are counted only, and of which kinds. */
  number: number;
  /** How many are counted only. */
  older: number;
  counts: KindCounts;
}

/** Older markers of neighbouring steps. */
export interface OlderSpan extends Window {
  number: number;
  counts: KindCounts;
}

/** What stands at one place of the axis. */
interface Item extends Window {
  time: number;
  what: Marker | OlderMarkers;
}

const isTold = (what: Marker | OlderMarkers): what is Marker => "kind" in what;

const kindsOf = ({ counts }: OlderMarkers) => Object.entries(counts) as [MarkerKind, number][];

/** How many there are of each kind. */
export function countsOf(markers: readonly Marker[], older: readonly OlderMarkers[]): KindCounts {
  const counts: KindCounts = { version: 0, agent: 0, burst: 0, note: 0 };
  for (const { kind } of markers) counts[kind] += 1;
  for (const step of older) for (const [kind, number] of kindsOf(step)) counts[kind] += number;
  return counts;
}

export function numberOf(counts: KindCounts): number {
  return Object.values(counts).reduce((sum, number) => sum + number, 0);
}

/** Those nearer to the first of a group than `least` pixels are of the group. What is counted stands amid its step. */
export function groupMarkers(
  markers: readonly Marker[],
  older: readonly OlderMarkers[],
  { from, until }: Window,
  width: number,
  least: number,
): MarkerGroup[] {
  const pixel = (time: number) => ((time - from) / (until - from)) * width;
  const items: Item[] = [
    ...markers.map((marker) => ({ from: marker.time, until: marker.time + 1, time: marker.time, what: marker })),
    ...older.map((step) => ({ from: step.from, until: step.until, time: (step.from + step.until) / 2, what: step })),
  ];
  const seen = items.filter(({ time }) => time >= from && time <= until).sort((a, b) => a.time - b.time);
  const groups: { begin: number; items: Item[] }[] = [];
  for (const item of seen) {
    const x = pixel(item.time);
    const last = groups.at(-1);
    if (last !== undefined && x - last.begin < least) last.items.push(item);
    else groups.push({ begin: x, items: [item] });
  }
  return groups.map((group) => groupOf(group.items, group.begin, pixel, least));
}

/** A group stands in the middle of its moments; its neighbours are a whole width away from its first one. */
function groupOf(items: readonly Item[], begin: number, pixel: (time: number) => number, least: number): MarkerGroup {
  const whats = items.map(({ what }) => what);
  const markers = whats.filter(isTold);
  const older = whats.filter((what): what is OlderMarkers => !isTold(what));
  const counts = countsOf(markers, older);
  const number = numberOf(counts);
  const end = items.reduce((latest, { time }) => Math.max(latest, time), 0);
  return {
    x: Math.min((begin + pixel(end)) / 2, begin + least / 2),
    from: items.reduce((first, item) => Math.min(first, item.from), Number.POSITIVE_INFINITY),
    until: items.reduce((last, item) => Math.max(last, item.until), 0),
    markers,
    number,
    older: number - markers.length,
    counts,
  };
}

/** How many there are of each kind, in words: `2 versions, 1 note`. */
export function kindsText(counts: KindCounts): string {
  const words = { version: "version", agent: "agent start", burst: "burst", note: "note" } as const;
  return (Object.keys(words) as MarkerKind[])
    .filter((kind) => counts[kind] > 0)
    .map((kind) => `${count(counts[kind])} ${words[kind]}${counts[kind] === 1 ? "" : "s"}`)
    .join(", ");
}

/**
 * Times to zoom to, so that what is counted in them is told: neighbouring steps together have at most `room` markers,
 * or twice that, and so on, where there would be more than `most` times. Steps further apart than `longest`, in
 * milliseconds, are of different ones: a time as long as all that is shown would lead nowhere.
 */
export function olderSpans(
  older: readonly OlderMarkers[],
  room: number,
  most: number,
  longest = Number.POSITIVE_INFINITY,
): OlderSpan[] {
  const spans: { from: number; steps: OlderMarkers[]; number: number }[] = [];
  for (const step of older) {
    const number = numberOf(countsOf([], [step]));
    const last = spans.at(-1);
    if (last !== undefined && last.number + number <= room && step.until - last.from <= longest) {
      last.steps.push(step);
      last.number += number;
    } else spans.push({ from: step.from, steps: [step], number });
  }
  // With room for all of them there are no fewer.
  const all = spans.reduce((sum, { number }) => sum + number, 0);
  if (spans.length > Math.max(1, most) && room < all) return olderSpans(older, room * 2, most, longest);
  return spans.map(({ from, steps, number }) => ({
    from,
    until: (steps.at(-1) as OlderMarkers).until,
    number,
    counts: countsOf([], steps),
  }));
}

/** Whether a zoom to a time shows less than there is now. */
export function isNarrower(time: Window, range: Window): boolean {
  return lengthOf(ordered(time.from, time.until)) < lengthOf(range);
}

/**
 * Moments that windows around a marker must not hold: other changes of its service, and steps in which versions are
 * only counted, which may be of that service.
 */
export function momentsBeside(
  marker: Marker,
  markers: readonly Marker[],
  older: readonly OlderMarkers[],
): readonly number[] {
  const others = markers.filter(
    (one) => one.kind === "version" && one !== marker && one.labels.service === marker.labels.service,
  );
  const steps = older.filter(({ counts }) => (counts.version ?? 0) > 0);
  return [
    ...others.map(({ time }) => time),
    ...steps.flatMap(({ from, until }) => (until <= marker.time ? [until] : [from, until])),
  ];
}
