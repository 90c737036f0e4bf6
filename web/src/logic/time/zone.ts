/**
 * The calendar that times are told in: the browser's, or UTC. In: which one is chosen. Out: a moment's date and clock,
 * and back. Who asks within a computation follows the choice, where the choice is a signal.
 */

export type Zone = "local" | "utc";

let chosen: () => Zone = () => "local";

/** From now on the zone is what `zone` says. */
export function followZone(zone: () => Zone): void {
  chosen = zone;
}

export function zoneNow(): Zone {
  return chosen();
}

export interface CalendarTime {
  year: number;
  /** From 0 for January. */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

export function calendarOf(ms: number): CalendarTime {
  const t = new Date(ms);
  if (chosen() === "utc")
    return {
      year: t.getUTCFullYear(),
      month: t.getUTCMonth(),
      day: t.getUTCDate(),
      hour: t.getUTCHours(),
      minute: t.getUTCMinutes(),
      second: t.getUTCSeconds(),
    };
  return {
    year: t.getFullYear(),
    month: t.getMonth(),
    day: t.getDate(),
    hour: t.getHours(),
    minute: t.getMinutes(),
    second: t.getSeconds(),
  };
}

/** Unix milliseconds; days beyond a month's end count on. Of a time that comes twice it is the first. */
export function momentOf(year: number, month: number, day: number, hour = 0, minute = 0, second = 0): number {
  if (chosen() === "utc") return Date.UTC(year, month, day, hour, minute, second);
  return new Date(year, month, day, hour, minute, second).getTime();
}

/** Minutes that the clocks are ahead of UTC at a moment. */
export function aheadOfUtc(ms: number): number {
  return chosen() === "utc" ? 0 : -new Date(ms).getTimezoneOffset();
}

/** No zone changes its clocks twice within this time, nor by more. */
const NEAR_MS = 3 * 3_600_000;

/** Whether clocks show this time twice, since they were put back: which of the two is meant the zone alone tells. */
export function isTwice(ms: number): boolean {
  const [early, late] = [aheadOfUtc(ms - NEAR_MS), aheadOfUtc(ms + NEAR_MS)];
  if (early <= late) return false;
  const own = aheadOfUtc(ms);
  const other = ms + (own === early ? 1 : -1) * (early - late) * 60_000;
  return aheadOfUtc(other) !== own;
}
