/**
 * Which waits count, as conditions of the selector: each class and each way in which a wait began can be left out, or
 * be kept alone. In: a selector, the classes and states there are. Out: what is left out, and other selectors.
 */
import { formatSelector, type LabelMatcher, parseSelector, withMatcher } from "../labels/selector.ts";

export const CLASS = "wait.class";
export const STATE = "wait.state";
/** Kernel threads that have nothing to do. */
export const IDLE = "idle";

export type WaitLabel = typeof CLASS | typeof STATE;

const isOfWaits = ({ label }: LabelMatcher) => label === CLASS || label === STATE;

/** The selector without its conditions on waits; null where it can't be read. */
export function withoutWaits(query: string): string | null {
  const matchers = parseSelector(query);
  return matchers === null ? null : formatSelector(matchers.filter((one) => !isOfWaits(one)));
}

/** Whether samples with this value count, as far as conditions are those that this file writes. */
export function isKept(query: string, label: WaitLabel, value: string): boolean {
  const of = (parseSelector(query) ?? []).filter((one) => one.label === label);
  return of.every(({ operator, value: given }) =>
    operator === "=" ? given === value : operator === "!=" ? given !== value : true,
  );
}

/** The value that is kept alone; null where none is. */
export function keptAlone(query: string, label: WaitLabel): string | null {
  return (parseSelector(query) ?? []).find((one) => one.label === label && one.operator === "=")?.value ?? null;
}

const without = (query: string, label: WaitLabel, drop: (matcher: LabelMatcher) => boolean) =>
  formatSelector((parseSelector(query) ?? []).filter((one) => one.label !== label || !drop(one)));

/** Leaves a value out, or takes it in again beside what counts already. `known`: all values that there are. */
export function toggled(query: string, label: WaitLabel, value: string, known: readonly string[]): string {
  const alone = keptAlone(query, label);
  if (alone === null) {
    return isKept(query, label, value)
      ? withMatcher(query, { label, operator: "!=", value })
      : without(query, label, (one) => one.operator === "!=" && one.value === value);
  }
  const all = without(query, label, () => true);
  // Of the one that was kept alone nothing would be left.
  if (alone === value) return all;
  const others = known.filter((one) => one !== alone && one !== value);
  return others.reduce((text, one) => withMatcher(text, { label, operator: "!=", value: one }), all);
}

/** Keeps a value alone, or all again. */
export function onlyOf(query: string, label: WaitLabel, value: string): string {
  return keptAlone(query, label) === value
    ? without(query, label, () => true)
    : withMatcher(query, { label, operator: "=", value });
}
