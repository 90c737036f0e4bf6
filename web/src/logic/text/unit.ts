/**
 * What counts of an answer are in: samples, CPU time, or bytes and things of a type that is no time. In: the server's
 * `unit`. Out: amounts and rates as text. Only what is time has cores and CPU seconds.
 */
import { brief, bytes, cores, count, duration, plural } from "./format.ts";

export interface Unit {
  /** `samples`, `nanoseconds`, or the type's own: `bytes`, `count`, … */
  name: string;
  isTime: boolean;
}

export const SAMPLES: Unit = { name: "samples", isTime: true };

/** Servers that know of time alone name no other. */
export function unitOf(answer: { unit: string; is_time?: boolean } | null): Unit {
  return answer === null ? SAMPLES : { name: answer.unit, isTime: answer.is_time ?? true };
}

/** `12 samples`, `3.4 s of CPU time`, `5.6 MiB`, `7 objects`. */
export function amountText(value: number, { name }: Unit): string {
  if (name === "samples") return plural(value, "sample");
  if (name === "nanoseconds") return `${duration(value / 1e9)} of CPU time`;
  return name === "bytes" ? bytes(value) : `${count(value)}${name === "count" ? "" : ` ${name}`}`;
}

/** The same for a column whose head has the unit. */
export function amountShort(value: number, { name }: Unit): string {
  if (name === "nanoseconds") return duration(value / 1e9);
  return name === "bytes" ? bytes(value) : brief(value);
}

export function amountHead({ name }: Unit): string {
  return name === "nanoseconds" ? "CPU time" : name;
}

/** `0.42 cores`, `1.2 MiB/s`, `30/s`. */
export function rateText(value: number, unit: Unit): string {
  return unit.isTime ? `${cores(value)} cores` : `${rateShort(value, unit)}/s`;
}

/** The same for a column whose head has the unit. */
export function rateShort(value: number, { name, isTime }: Unit): string {
  if (isTime) return cores(value);
  return name.startsWith("bytes") ? bytes(value) : brief(value);
}

export function rateHead({ name, isTime }: Unit): string {
  if (isTime) return "cores";
  return name.endsWith(" per second") ? name : `${name} per second`;
}
