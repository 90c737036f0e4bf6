/**
 * Moments on a time axis. In: markers in any order, and where the axis lies. Out: groups that stand so far apart that
 * each can be hit, in the order of time. The cost follows the number of markers once, whatever their density.
 */
import type { Marker } from "../../api/types.ts";
import type { Window } from "../time/time.ts";

export interface MarkerGroup {
  /** Pixels from the axis's beginning. */
  x: number;
  /** In the order of time. */
  markers: Marker[];
}

/** Those nearer to the first of a group than `least` pixels are of the group. */
export function groupMarkers(
  markers: readonly Marker[],
  { from, until }: Window,
  width: number,
  least: number,
): MarkerGroup[] {
  const pixel = (time: number) => ((time - from) / (until - from)) * width;
  const seen = markers.filter(({ time }) => time >= from && time <= until).sort((a, b) => a.time - b.time);
  const groups: (MarkerGroup & { begin: number })[] = [];
  for (const marker of seen) {
    const x = pixel(marker.time);
    const last = groups.at(-1);
    if (last !== undefined && x - last.begin < least) last.markers.push(marker);
    else groups.push({ x, begin: x, markers: [marker] });
  }
  // A group stands in the middle of its moments; its neighbours are a whole width away from its first one.
  return groups.map(({ begin, markers: own }) => ({
    x: Math.min((begin + pixel((own.at(-1) as Marker).time)) / 2, begin + least / 2),
    markers: own,
  }));
}

/** How many there are of each kind, in words: `2 versions, 1 note`. */
export function kindsText(markers: readonly Marker[]): string {
  const words = { version: "version", agent: "agent start", burst: "burst", note: "note" } as const;
  return (Object.keys(words) as (keyof typeof words)[])
    .map((kind) => ({ kind, number: markers.filter((marker) => marker.kind === kind).length }))
    .filter(({ number }) => number > 0)
    .map(({ kind, number }) => `${number} ${words[kind]}${number === 1 ? "" : "s"}`)
    .join(", ");
}
