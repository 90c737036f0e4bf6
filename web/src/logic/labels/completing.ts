/**
 * What completes a selector that is typed, and what a word may mean. In: text, the caret, what the server found. Out:
 * suggestions, and the text with one of them taken. It is fetched when somebody comes to a box for selectors.
 */
import { LABEL, type LabelMatcher, quote, unquote } from "./selector.ts";

const VALUE_AT = new RegExp(String.raw`(${LABEL})\s*(?:=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)$`);
const OPERATOR_AT = new RegExp(String.raw`(?:^|[{,\s])(${LABEL})(?:\s+|\s*([=!~]{1,2}))$`);
const LABEL_AT = new RegExp(`(${LABEL})?$`);

/** Labels whose values people call things by, the most usual first; the others follow. */
const WORD_LABELS = ["service", "process", "container", "pod", "workload", "namespace", "node", "unit", "thread"];
const FUNCTION = "function";
/** What a search finds that is no name of a value: numbers of something, and functions. */
const NO_NAMES = new Set(["cpu", "tid", "tgid", "mode", FUNCTION]);

/**
 * What a word may mean, of what the server found for it: values that it is, or else values that contain it, as
 * matchers, at most so many. Those that it is come by label, the most usual first; others as the server has them.
 */
export function meanings(
  word: string,
  hits: readonly { label: string; value: string }[],
  most: number,
): LabelMatcher[] {
  const low = word.toLowerCase();
  const names = hits.filter(({ label }) => !NO_NAMES.has(label));
  const place = (label: string) => (WORD_LABELS.indexOf(label) + WORD_LABELS.length + 1) % (WORD_LABELS.length + 1);
  const exact = names.filter(({ value }) => value === word);
  const same = exact.length > 0 ? exact : names.filter(({ value }) => value.toLowerCase() === low);
  const meant = same.length > 0 ? same.toSorted((a, b) => place(a.label) - place(b.label)) : names;
  return meant.slice(0, most).map(({ label, value }) => ({ label, operator: "=", value }));
}

/** Names of the functions among what the server found, of several modules once. */
export function functionsAmong(hits: readonly { label: string; value: string }[]): string[] {
  return [...new Set(hits.filter(({ label }) => label === FUNCTION).map(({ value }) => value))];
}

export type Completing =
  | { what: "label"; prefix: string; from: number }
  | { what: "operator"; label: string; prefix: string; from: number }
  | { what: "value"; label: string; prefix: string; from: number; closed: boolean };

/** What stands at the caret: a label's name, its operator, or its value. */
export function completingAt(text: string, caret: number): Completing {
  const left = text.slice(0, caret);
  const value = VALUE_AT.exec(left);
  if (value !== null && !isInsideQuotes(left.slice(0, value.index))) {
    const prefix = value[2] as string;
    return {
      what: "value",
      label: value[1] as string,
      prefix: unquote(`"${prefix}"`),
      from: caret - prefix.length,
      closed: /^(?:[^"\\]|\\.)*"/.test(text.slice(caret)),
    };
  }
  const operator = OPERATOR_AT.exec(left);
  if (operator !== null) {
    const prefix = operator[2] ?? "";
    return { what: "operator", label: operator[1] as string, prefix, from: caret - prefix.length };
  }
  const label = LABEL_AT.exec(left) as RegExpExecArray;
  const prefix = label[1] ?? "";
  return { what: "label", prefix, from: caret - prefix.length };
}

function isInsideQuotes(text: string): boolean {
  return (text.replace(/\\./g, "").match(/"/g)?.length ?? 0) % 2 === 1;
}

export interface Completion {
  text: string;
  caret: number;
}

/** The text after a suggestion was taken, and where the caret then stands. */
export function complete(text: string, caret: number, at: Completing, choice: string): Completion {
  const head = text.slice(0, at.from);
  let tail = text.slice(caret);
  if (at.what === "label") {
    tail = tail.replace(/^[\w./-]*/, "");
    const open = head.trim() === "" ? "{" : "";
    const insert = /^\s*(=|!)/.test(tail) ? choice : `${choice}="`;
    const before = `${head}${open}${insert}`;
    return { text: before + tail, caret: before.length };
  }
  if (at.what === "operator") {
    const before = `${head.trimEnd()}${choice}"`;
    return { text: before + tail, caret: before.length };
  }
  if (at.closed) tail = tail.replace(/^(?:[^"\\]|\\.)*"/, "");
  const before = `${head}${quote(choice).slice(1)}`;
  const close = text.trimStart().startsWith("{") && !/[}]/.test(tail) ? "}" : "";
  return { text: before + tail.replace(/^\s+$/, "") + close, caret: (before + close).length };
}

/** Suggestions that contain what was typed, those that begin with it first; at most `limit`. */
export function suggestions(all: readonly string[], prefix: string, limit: number): string[] {
  const low = prefix.toLowerCase();
  const begin = all.filter((one) => one.toLowerCase().startsWith(low));
  const inside = all.filter((one) => !one.toLowerCase().startsWith(low) && one.toLowerCase().includes(low));
  return [...begin, ...inside].slice(0, limit);
}
