/**
 * From threads that waited to those who ended their waits, and back. In: a selector of the one. Out: a selector of the
 * other, and the labels of which it has no such: what is known of the one is not known of the other.
 */
import { formatSelector, parseSelector } from "../labels/selector.ts";

export const WAITED = "off_cpu";
export const WOKE = "wake_up";

/** Labels of who waited, and what they are called in samples of who woke them. */
const WOKEN: Readonly<Record<string, string>> = {
  node: "node",
  service: "woken.service",
  process: "woken.process",
  thread: "woken.thread",
};
const ASLEEP = Object.fromEntries(Object.entries(WOKEN).map(([asleep, woken]) => [woken, asleep]));

export interface Translated {
  query: string;
  /** Labels whose conditions are left out, each once. */
  leftOut: string[];
}

function translated(query: string, names: Readonly<Record<string, string>>): Translated | null {
  const matchers = parseSelector(query);
  if (matchers === null) return null;
  const named = (label: string) => (Object.hasOwn(names, label) ? (names[label] as string) : null);
  const kept = matchers.flatMap((one) => {
    const label = named(one.label);
    return label === null ? [] : [{ ...one, label }];
  });
  const leftOut = matchers.map(({ label }) => label).filter((label) => named(label) === null);
  return { query: formatSelector(kept), leftOut: [...new Set(leftOut)] };
}

/** Who ended the waits of these; null where the selector can't be read. */
export const toWakers = (query: string): Translated | null => translated(query, WOKEN);

/** The waits that were ended, of those who waited; null where the selector can't be read. */
export const toWaits = (query: string): Translated | null => translated(query, ASLEEP);

/** The label by which rows of the other are told: of waits that of who waited means nothing among those who woke. */
export const labelBehind = (by: string, isWoke: boolean): string =>
  isWoke ? (ASLEEP[by] ?? by) : by.startsWith("wait.") ? "service" : by;

/** What the way there does, with what it leaves out. */
export function wayText(does: string, leftOut: readonly string[]): string {
  return leftOut.length === 0 ? does : `${does}. Left out, since nothing is known of it there: ${leftOut.join(", ")}`;
}
