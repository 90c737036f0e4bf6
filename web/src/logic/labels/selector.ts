/**
 * Selectors, `{service="kubelet",node=~"db-.*"}`, as far as the page must understand them: to complete what is being
 * typed and to add a matcher by a click. The server alone decides what is valid; text that this file cannot read is
 * passed on as it is.
 */

export type Operator = "=" | "!=" | "=~" | "!~";

export interface LabelMatcher {
  label: string;
  operator: Operator;
  value: string;
}

/** A label: a word, an attribute's name, or either in quotes. It stays as it is written. */
const LABEL = String.raw`[a-zA-Z_][\w./-]*`;
const MATCHER = new RegExp(
  String.raw`^(${LABEL}|"(?:[^"\\]|\\.)*")\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` +
    "`[^`]*`" +
    String.raw`)\s*(,|$)\s*`,
  "s",
);
const VALUE_AT = new RegExp(String.raw`(${LABEL})\s*(?:=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)$`);
const OPERATOR_AT = new RegExp(String.raw`(?:^|[{,\s])(${LABEL})(?:\s+|\s*([=!~]{1,2}))$`);
const LABEL_AT = new RegExp(`(${LABEL})?$`);

/** The matchers of a selector, or null where the text is not one. Braces may be left out. */
export function parseSelector(text: string): LabelMatcher[] | null {
  let rest = text.trim();
  if (rest.startsWith("{")) {
    if (!rest.endsWith("}")) return null;
    rest = rest.slice(1, -1);
  }
  const matchers: LabelMatcher[] = [];
  rest = rest.trim();
  while (rest !== "") {
    const matcher = MATCHER.exec(rest);
    if (matcher === null) return null;
    const [whole, label, operator, quoted] = matcher as unknown as [string, string, Operator, string];
    matchers.push({ label, operator, value: unquote(quoted) });
    rest = rest.slice(whole.length);
  }
  return matchers;
}

export function formatSelector(matchers: readonly LabelMatcher[]): string {
  if (matchers.length === 0) return "";
  return `{${matchers.map((m) => `${m.label}${m.operator}${quote(m.value)}`).join(",")}}`;
}

export function quote(value: string): string {
  return `"${value.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n").replace(/\t/g, "\\t")}"`;
}

function unquote(quoted: string): string {
  const inner = quoted.slice(1, -1);
  if (quoted.startsWith("`")) return inner;
  return inner.replace(/\\(.)/gs, (_, c: string) => (c === "n" ? "\n" : c === "t" ? "\t" : c));
}

/** What the URL and the API get for what was typed: braces added, nothing for an empty selector. */
export function tidySelector(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "" || /^\{\s*\}$/.test(trimmed)) return "";
  return trimmed.startsWith("{") ? trimmed : `{${trimmed}}`;
}

/**
 * Adds a matcher by a click. `=` takes the place of every other matcher of its label; `!=` stands beside other `!=`.
 * Where the text cannot be read, it starts anew.
 */
export function withMatcher(text: string, matcher: LabelMatcher): string {
  const present = parseSelector(text) ?? [];
  const kept = present.filter((m) => {
    if (m.label !== matcher.label) return true;
    if (matcher.operator === "=") return false;
    return m.operator !== "=" && !(m.operator === matcher.operator && m.value === matcher.value);
  });
  return formatSelector([...kept, matcher]);
}

/**
 * Text that names no label and no operator: a word that is looked for among the labels' values; null for a selector.
 */
export function wordOf(text: string): string | null {
  const word = text.trim();
  return word === "" || /[{}="'`]/.test(word) || /[!~]$/.test(word) ? null : word;
}

/** Labels whose values people call things by, the most usual first; the others follow. */
export const WORD_LABELS = [
  "service",
  "process",
  "container",
  "pod",
  "workload",
  "namespace",
  "node",
  "unit",
  "thread",
];
/** Each is asked of the server. */
const MOST_WORD_LABELS = 24;
/** Values that are numbers of something, and no names. */
const NUMBERS = new Set(["cpu", "tid", "tgid", "mode"]);

/** The labels whose values may be meant by a word, in the order in which they are looked at. */
export function wordLabels(labels: readonly string[]): string[] {
  const usual = WORD_LABELS.filter((label) => labels.includes(label));
  const others = labels.filter((label) => !usual.includes(label) && !NUMBERS.has(label));
  return [...usual, ...others].slice(0, MOST_WORD_LABELS);
}

/** What a word may mean: values that it is, or else values that contain it, as matchers, at most so many. */
export function meanings(
  word: string,
  values: readonly { label: string; values: readonly string[] }[],
  most: number,
): LabelMatcher[] {
  const low = word.toLowerCase();
  const of = (test: (value: string) => boolean) =>
    values.flatMap(({ label, values: all }) =>
      all.filter(test).map((value): LabelMatcher => ({ label, operator: "=", value })),
    );
  const exact = of((value) => value === word);
  const same = exact.length > 0 ? exact : of((value) => value.toLowerCase() === low);
  return (same.length > 0 ? same : of((value) => value.toLowerCase().includes(low))).slice(0, most);
}

/** Adds a matcher beside all others; null where the text cannot be read. */
export function andMatcher(text: string, ...matchers: LabelMatcher[]): string | null {
  const present = parseSelector(text);
  return present === null ? null : formatSelector([...present, ...matchers]);
}

/** A regular expression that matches these values only (the server's are anchored). */
export function anyOf(values: readonly string[]): string {
  return values.map((value) => value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");
}

/**
 * Two selectors that compare one value of a label with the rest: side B is the value, side A all others that were
 * selected.
 */
export function againstRest(text: string, label: string, value: string): { query: string; baseQuery: string } {
  return {
    query: withMatcher(text, { label, operator: "=", value }),
    baseQuery: withMatcher(text, { label, operator: "!=", value }),
  };
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

/** Whether the selector leaves one CPU or one thread, as far as its text tells. */
export function laneOf(matchers: readonly LabelMatcher[] | null): {
  node: string;
  cpu: string;
  tid: string;
  thread: string;
} {
  const value = (label: string) => matchers?.find((m) => m.label === label && m.operator === "=")?.value ?? "";
  return { node: value("node"), cpu: value("cpu"), tid: value("tid"), thread: value("thread") };
}
