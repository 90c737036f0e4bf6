/**
 * What counts of an answer are in: samples, CPU time, time waited, or bytes and things of a type that is no time. In:
 * the server's `unit`. Out: amounts and rates as text. CPU time for each second is cores, time waited for each second
 * is threads that wait; no other type has either.
 */
import { brief, bytes, cores, count, duration, plural } from "./format.ts";

export interface Unit {
  /** `samples`, `nanoseconds`, or the type's own: `bytes`, `count`, … */
  name: string;
  isTime: boolean;
  /** The time is none of a CPU. */
  isWait?: boolean;
}

/** Of a profile type: whether its time is what threads did not run, also where it is told of those who ended that. */
export function isWait(type: string): boolean {
  return type === "off_cpu" || type === "run_queue" || type === "wake_up";
}

export const SAMPLES: Unit = { name: "samples", isTime: true };

/** Servers that know of time alone name no other. */
export function unitOf(answer: { unit: string; is_time?: boolean; type?: string } | null): Unit {
  if (answer === null) return SAMPLES;
  const isTime = answer.is_time ?? true;
  return { name: answer.unit, isTime, ...(isTime && isWait(answer.type ?? "") ? { isWait: true } : {}) };
}

/** What seconds of a type that is time are called. */
export function timeHead({ isWait: isOfWaits = false }: Unit): string {
  return isOfWaits ? "time waited" : "CPU time";
}

/** The same behind seconds. */
export function timeWords({ isWait: isOfWaits = false }: Unit): string {
  return isOfWaits ? "waited" : "of CPU time";
}

/** `3.4 s of CPU time`, `3.4 s waited`. */
export function timeText(seconds: number, unit: Unit): string {
  return `${duration(seconds)} ${timeWords(unit)}`;
}

/** `12 samples`, `3.4 s of CPU time`, `5.6 MiB`, `7 objects`. */
export function amountText(value: number, unit: Unit): string {
  const { name } = unit;
  if (name === "samples") return plural(value, "sample");
  if (name === "nanoseconds") return timeText(value / 1e9, unit);
  return name === "bytes" ? bytes(value) : `${count(value)}${name === "count" ? "" : ` ${name}`}`;
}

/** The same for a column whose head has the unit. */
export function amountShort(value: number, { name }: Unit): string {
  if (name === "nanoseconds") return duration(value / 1e9);
  return name === "bytes" ? bytes(value) : brief(value);
}

export function amountHead(unit: Unit): string {
  return unit.name === "nanoseconds" ? timeHead(unit) : unit.name;
}

/** `0.42 cores`, `3.1 threads waiting`, `1.2 MiB/s`, `30/s`. */
export function rateText(value: number, unit: Unit): string {
  return unit.isTime ? `${cores(value)} ${rateHead(unit)}` : `${rateShort(value, unit)}/s`;
}

/** The same for a column whose head has the unit. */
export function rateShort(value: number, { name, isTime }: Unit): string {
  if (isTime) return cores(value);
  return name.startsWith("bytes") ? bytes(value) : brief(value);
}

export function rateHead({ name, isTime, isWait: isOfWaits = false }: Unit): string {
  if (isTime) return isOfWaits ? "threads waiting" : "cores";
  return name.endsWith(" per second") ? name : `${name} per second`;
}
