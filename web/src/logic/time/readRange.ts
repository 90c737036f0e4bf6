/**
 * A range of time as a person types or pastes it. In: the text, and the present. Out: both ends as the address holds
 * them, or what is wrong and what is allowed. Times without a zone are of the chosen one.
 */
import { dateText, parseTime, type Window } from "./time.ts";
import { LONGEST_MS } from "./windows.ts";
import { calendarOf, momentOf } from "./zone.ts";

export interface RangeTexts {
  from: string;
  until: string;
}

export type ReadRange = RangeTexts | { fault: string };

/** One of each kind, for the page to show. */
export const EXAMPLES = [
  "now-2h",
  "now-1h to now",
  "14:05 to 14:20",
  "2026-11-27T14:05Z to 14:20Z",
  "2026-11-26",
  "1764252300 to 1764253200",
] as const;

const ALLOWED = "Give now-2h, a time of day, a date with or without time and zone, or Unix seconds or milliseconds.";

const UNITS: Record<string, number> = { ms: 1, s: 1e3, m: 6e4, min: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
const LENGTH = /^(?:\d+(?:ms|min|[smhdw]))+$/;
const DAY = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](.+))?$/i;
const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?$/;
const ZONE = /\s*(z|utc|gmt|(?:utc|gmt)?[+-]\d{1,2}(?::?\d{2})?)$/i;
const HALF = /\s*([ap])\.?m\.?$/i;
const SEPARATOR = /\s+(?:to|until|till)\s+|\s*[–—]\s*|\s+-\s+|\s*\.\.+\s*|\s*\/\s*/i;

/** A moment, and the day that it stands for where a date alone was given. */
interface TimePoint {
  ms: number;
  /** As the address holds it. */
  text: string;
  /** The end of the day, where it is a date alone. */
  dayEnd: number | null;
  /** A time of day alone, which lies on another day too. */
  onDay: ((year: number, month: number, day: number) => number) | null;
}

type Read = TimePoint | { fault: string };

const isFault = <T>(read: T | { fault: string }): read is { fault: string } =>
  typeof read === "object" && read !== null && "fault" in read;

export function readRange(text: string, now: number): ReadRange {
  const parts = text.trim().split(SEPARATOR);
  if (text.trim() === "") return { fault: `There is no time yet. ${ALLOWED}` };
  if (parts.length > 2) return { fault: `These are more than two times. ${ALLOWED}` };
  const [begin = "", end] = parts;
  const from = readTimePoint(begin, now);
  if (isFault(from)) return from;
  if (end === undefined) return rangeFrom(from, now);
  const until = readTimePoint(end, now);
  if (isFault(until)) return until;
  return checked(from, endOf(from, until), now);
}

/** One time alone: a date is its whole day, everything else is the time since then. */
function rangeFrom(from: TimePoint, now: number): ReadRange {
  if (from.dayEnd !== null && from.dayEnd <= now) return checked(from, fixed(from.dayEnd), now);
  if (from.onDay !== null && from.ms > now) return checked(onDayOf(from, now, -1), fixed(now, "now"), now);
  return checked(from, fixed(now, "now"), now);
}

/** The end of a range: a time of day lies behind its begin, a date's end is meant. */
function endOf(from: TimePoint, until: TimePoint): TimePoint {
  if (until.dayEnd !== null) return fixed(until.dayEnd);
  if (until.onDay === null) return until;
  const same = onDayOf(until, from.ms, 0);
  return same.ms > from.ms ? same : onDayOf(until, from.ms, 1);
}

function onDayOf(time: TimePoint, of: number, later: number): TimePoint {
  const { year, month, day } = calendarOf(of);
  return { ...fixed(time.onDay?.(year, month, day + later) ?? time.ms), onDay: time.onDay };
}

function checked(from: TimePoint, until: TimePoint, now: number): ReadRange {
  // Both are times of day: the last ones that are over.
  if (from.onDay !== null && until.onDay !== null && from.ms > now) {
    return checked(
      { ...onDayOf(from, from.ms, -1), onDay: null },
      { ...onDayOf(until, until.ms, -1), onDay: null },
      now,
    );
  }
  if (from.ms > now) return { fault: `${dateText(from.ms)} lies in the future: nothing is known of it yet.` };
  if (from.ms >= until.ms) {
    return { fault: `The begin, ${dateText(from.ms)}, is not before the end, ${dateText(until.ms)}.` };
  }
  if (until.ms - from.ms > LONGEST_MS) return { fault: "A range has at most 400 days." };
  return { from: from.text, until: until.text };
}

const fixed = (ms: number, text = String(ms)): TimePoint => ({ ms, text, dayEnd: null, onDay: null });

function readTimePoint(given: string, now: number): Read {
  const text = given.trim().replace(/\s+/g, " ");
  const lower = text.toLowerCase();
  if (text === "") return { fault: `A time is missing before or behind “to”. ${ALLOWED}` };
  const relative = relativeTo(lower.replace(/ /g, ""), now);
  if (relative !== null) return relative;
  if (/^\d+(\.\d+)?$/.test(text)) return unixTime(text);
  const { year, month, day } = calendarOf(now);
  if (lower === "today") return dayOf(year, month, day);
  if (lower === "yesterday") return dayOf(year, month, day - 1);
  return calendarTime(text, now);
}

/** `now`, `now-2h`, `now-1h30m`; a length alone, `2h` or `last 2h`, is that long ago. */
function relativeTo(text: string, now: number): Read | null {
  if (text === "now") return fixed(now, "now");
  const length = /^(?:now-|last|past|-)?(.+)$/.exec(text)?.[1] ?? "";
  if (!LENGTH.test(length)) {
    if (!text.startsWith("now")) return null;
    return { fault: `“${text}” is no relative time: give now, or now- with a number and ms, s, m, h, d or w.` };
  }
  const ms = [...length.matchAll(/(\d+)(ms|min|[smhdw])/g)].reduce(
    (sum, [, number, unit]) => sum + Number(number) * (UNITS[unit as string] as number),
    0,
  );
  return fixed(now - ms, `now-${lengthText(ms)}`);
}

/** In the largest unit of which it is a whole number. */
function lengthText(ms: number): string {
  const [unit, size] = (["w", "d", "h", "m", "s"] as const)
    .map((name) => [name, UNITS[name] as number] as const)
    .find(([, one]) => ms > 0 && ms % one === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}

/** By its digits: seconds until the year 5138, milliseconds from 1973 on. */
function unixTime(text: string): Read {
  const whole = text.replace(/\..*/, "").length;
  const value = Number(text);
  if (whole === 9 || whole === 10 || whole === 11) return fixed(Math.round(value * 1000));
  if (whole === 12 || whole === 13 || whole === 14) return fixed(Math.round(value));
  return { fault: `${text} is no Unix time: give seconds (10 digits) or milliseconds (13 digits).` };
}

function dayOf(year: number, month: number, day: number): TimePoint {
  return { ...fixed(momentOf(year, month, day)), dayEnd: momentOf(year, month, day + 1) };
}

/** A date, a time of day, or both; with a zone or in the chosen one. */
function calendarTime(text: string, now: number): Read {
  const unknown = { fault: `“${text}” is no time that is known here. ${ALLOWED}` };
  const read = DAY.exec(text);
  if (read !== null && !isDate(read)) return { fault: `There is no day ${read.slice(1, 4).join("-")}.` };
  const time = read === null ? text : (read[4] ?? "");
  const [year, month, day] = read === null ? [] : [Number(read[1]), Number(read[2]) - 1, Number(read[3])];
  if (year !== undefined && time === "") return dayOf(year, month as number, day as number);
  const clock = readClock(time);
  if (clock === null) return unknown;
  if (isFault(clock)) return clock;
  if (year !== undefined) return placed(text, clock, year, month as number, day as number);
  const today = calendarOf(now);
  const here = placed(text, clock, today.year, today.month, today.day);
  if (isFault(here)) return here;
  return { ...here, onDay: (y, m, d) => clock.at(y, m, d) };
}

function isDate([, year, month, day]: RegExpExecArray): boolean {
  const at = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return at.getUTCMonth() === Number(month) - 1 && at.getUTCDate() === Number(day);
}

interface Clock {
  at: (year: number, month: number, day: number) => number;
  /** What clocks show; null where the zone is given, as then every time exists. */
  shown: { hour: number; minute: number } | null;
}

function readClock(text: string): Clock | { fault: string } | null {
  const zone = ZONE.exec(text);
  const bare = zone === null ? text : text.slice(0, zone.index);
  const half = HALF.exec(bare);
  const read = CLOCK.exec(half === null ? bare.trim() : bare.slice(0, half.index).trim());
  if (read === null) return null;
  const [minute, second] = [Number(read[2]), Number(read[3] ?? 0)];
  let hour = Number(read[1]);
  if (half !== null) hour = (hour % 12) + (half[1]?.toLowerCase() === "p" ? 12 : 0);
  if (hour > 24 || minute > 59 || second > 59 || (hour === 24 && minute + second > 0)) {
    return { fault: `“${text}” is no time of day: hours go to 24, minutes and seconds to 59.` };
  }
  const part = read[4] === undefined ? 0 : Math.floor(Number(`0.${read[4]}`) * 1000);
  if (zone === null) {
    const at = (y: number, m: number, d: number) => momentOf(y, m, d, hour, minute, second) + part;
    return { at, shown: { hour: hour % 24, minute } };
  }
  const ahead = minutesAhead(zone[1] as string);
  const at = (y: number, m: number, d: number) => Date.UTC(y, m, d, hour, minute, second) - ahead * 60_000 + part;
  return { at, shown: null };
}

/** Of `Z`, `UTC`, `+02:00`, `-0330`, `UTC+1`. */
function minutesAhead(zone: string): number {
  const read = /([+-])(\d{1,2}):?(\d{2})?$/.exec(zone);
  if (read === null) return 0;
  return (read[1] === "-" ? -1 : 1) * (Number(read[2]) * 60 + Number(read[3] ?? 0));
}

function placed(text: string, { at, shown }: Clock, year: number, month: number, day: number): Read {
  const ms = at(year, month, day);
  const there = calendarOf(ms);
  if (shown !== null && (there.hour !== shown.hour || there.minute !== shown.minute)) {
    return { fault: `Clocks leave out ${text}: they go forward there. Give another time, or one with a zone.` };
  }
  return fixed(ms);
}

/** A range as the field shows it: what follows the present stays so. */
export function rangeInput({ from, until }: RangeTexts, window: Window, now: number): string {
  const side = (text: string, ms: number) =>
    text.startsWith("now") && parseTime(text, now) !== null ? text : dateText(ms);
  return `${side(from, window.from)} to ${side(until, window.until)}`;
}
