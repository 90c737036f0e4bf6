/**
 * Times and ranges. The URL and the API hold a time as Unix milliseconds, RFC 3339, or relative to now (`now-90s`,
 * `now-1h`); pages compute in Unix milliseconds and show the zone that was chosen, which they name.
 */
import { aheadOfUtc, calendarOf, isTwice } from "./zone.ts";

export interface Window {
  from: number;
  until: number;
}

const UNIT_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Unix milliseconds, or null where the text is no time. */
export function parseTime(text: string, now: number): number | null {
  const value = text.trim();
  if (value === "now") return now;
  const relative = /^now-(\d+)(ms|s|m|h|d|w)$/.exec(value);
  if (relative !== null) return now - Number(relative[1]) * (UNIT_MS[relative[2] as string] as number);
  if (/^\d{1,16}$/.test(value)) return Number(value);
  if (!/^\d{4}-\d{2}-\d{2}T/.test(value)) return null;
  const moment = Date.parse(value);
  return Number.isNaN(moment) ? null : moment;
}

export function isRelative(text: string): boolean {
  return text.startsWith("now");
}

const two = (value: number) => String(value).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export function clock(ms: number, seconds = true): string {
  const { hour, minute, second } = calendarOf(ms);
  const text = `${two(hour)}:${two(minute)}`;
  return seconds ? `${text}:${two(second)}` : text;
}

/** `12:04:05.123`. */
export function clockMs(ms: number): string {
  const whole = Math.floor(ms + 1e-6);
  return `${clock(whole)}.${String(whole % 1000).padStart(3, "0")}`;
}

/** `14 Nov`, with the year where it is not that of `now`. */
export function day(ms: number, now = ms): string {
  const { year, month, day: date } = calendarOf(ms);
  return `${date} ${MONTHS[month]}${year === calendarOf(now).year ? "" : ` ${year}`}`;
}

function sameDay(a: number, b: number): boolean {
  const [one, other] = [calendarOf(a), calendarOf(b)];
  return one.day === other.day && one.month === other.month && one.year === other.year;
}

/** What the clocks are ahead of UTC at a moment: `UTC+1`, `UTC-3:30`, `UTC`. */
export function zoneOf(ms: number): string {
  const ahead = aheadOfUtc(ms);
  if (ahead === 0) return "UTC";
  const [hours, minutes] = [Math.floor(Math.abs(ahead) / 60), Math.abs(ahead) % 60];
  return `UTC${ahead < 0 ? "-" : "+"}${hours}${minutes === 0 ? "" : `:${two(minutes)}`}`;
}

/** The zone of a range: both, where the clocks change within. */
export function zoneText({ from, until }: Window): string {
  const [begin, end] = [zoneOf(from), zoneOf(until)];
  return begin === end ? begin : `${begin}, then ${end}`;
}

/**
 * `14:05:00 – 14:20:00`, with the day where it is not the day of `now`, and with the zones where the clocks change
 * within, or show a time twice.
 */
export function rangeText(range: Window, now: number): string {
  const seconds = range.until - range.from < 3_600_000 || range.from % 60_000 !== 0;
  const [begins, ends] = [zoneOf(range.from), zoneOf(range.until)];
  const isPlain = begins === ends && !isTwice(range.from) && !isTwice(range.until);
  const zone = (of: string) => (isPlain ? "" : ` ${of}`);
  const moment = (ms: number, isDayKnown: boolean) => `${isDayKnown ? "" : `${day(ms, now)} `}${clock(ms, seconds)}`;
  const begin = `${moment(range.from, sameDay(range.from, now))}${zone(begins)}`;
  const end = `${moment(range.until, sameDay(range.from, range.until))}${zone(ends)}`;
  return `${begin} – ${end}`;
}

/** `2026-11-27 14:05:00`, as the field of a range takes it; with the zone where clocks show the time twice. */
export function dateText(ms: number): string {
  const { year, month, day: date } = calendarOf(ms);
  const part = ms % 1000 === 0 ? "" : `.${String(ms % 1000).padStart(3, "0")}`;
  const zone = isTwice(ms) ? ` ${zoneOf(ms)}` : "";
  return `${year}-${two(month + 1)}-${two(date)} ${clock(ms)}${part}${zone}`;
}

/**
 * Labels of an axis: days at midnight, else hours and minutes, seconds only where the steps are that fine. The first
 * behind a change of the clocks has its zone: an hour may come twice.
 */
export function tickLabels(ticks: readonly number[], stepMs: number): string[] {
  let last: number | null = null;
  return ticks.map((tick) => {
    const newDay = last !== null && !sameDay(last, tick);
    const newZone = last !== null && zoneOf(last) !== zoneOf(tick);
    last = tick;
    if (stepMs >= 86_400_000 || (newDay && clock(tick) === "00:00:00")) return day(tick);
    return `${clock(tick, stepMs < 60_000)}${newZone ? ` ${zoneOf(tick)}` : ""}`;
  });
}
