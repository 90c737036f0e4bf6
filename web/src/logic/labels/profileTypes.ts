/**
 * Profile types. In: a range, rows of the answer. Out: the question to the tables of samples, and types with their
 * names.
 */
import type { Window } from "../time/time.ts";

/** What samples of a type stand for; others are shown as they are called. */
const NAMES: Record<string, string> = {
  cpu: "CPU time",
  off_cpu: "Waiting",
  run_queue: "Waiting for a CPU",
  wake_up: "Who woke",
};
/** What else is to be said of them. */
const HINTS: Record<string, string> = {
  cpu: "what ran, sampled by each CPU's clock",
  off_cpu: "threads that slept: for another thread, a disk, a time, …",
  run_queue: "threads that could run, but had no CPU",
  wake_up: "threads that ended waits, by the time that these waits took",
};
const HOUR_MS = 3_600_000;

export function typeHint(type: string): string {
  return HINTS[type] ?? type;
}

export function typeName(type: string): string {
  return NAMES[type] ?? type;
}

/**
 * Which types there are: of old hours the roll-ups tell, of the newest two, which have none yet, the samples
 * themselves.
 */
export function typesQuery({ from, until }: Window): string {
  const hour = (moment: number) => `'${new Date(moment).toISOString().slice(0, 13)}'`;
  const within = (begin: number) => `hour >= ${hour(begin)} AND hour <= ${hour(until)}`;
  const newest = Math.max(from, until - 2 * HOUR_MS);
  const [samples, rollups] = [within(newest), within(from)];
  const of = (table: string) =>
    `SELECT DISTINCT type FROM ${table} WHERE ${samples} ` +
    `UNION SELECT DISTINCT type FROM ${table}_minute WHERE ${rollups}`;
  return `${of("samples")} UNION ${of("waits")}`;
}

/** What agents tell comes first: CPU time, waits; others in the order of the alphabet. */
export function typesOf(rows: readonly (readonly unknown[])[]): string[] {
  const all = new Set(rows.map(([type]) => String(type)));
  const known = Object.keys(NAMES).filter((type) => all.delete(type));
  return [...known, ...[...all].sort()];
}
