/**
 * Selectors, `{service="kubelet",node=~"db-.*"}`, as far as the page must understand them to add a matcher by a click.
 * The server alone decides what is valid; text that this file cannot read is passed on as it is.
 */

export type Operator = "=" | "!=" | "=~" | "!~";

export interface LabelMatcher {
  label: string;
  operator: Operator;
  value: string;
}

/** A label: a word, an attribute's name, or either in quotes. It stays as it is written. */
export const LABEL = String.raw`[a-zA-Z_][\w./-]*`;
const MATCHER = new RegExp(
  String.raw`^(${LABEL}|"(?:[^"\\]|\\.)*")\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` +
    "`[^`]*`" +
    String.raw`)\s*(,|$)\s*`,
  "s",
);
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

export function unquote(quoted: string): string {
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

/** The same of several, one after the other. */
export function withMatchers(text: string, matchers: readonly LabelMatcher[]): string {
  return matchers.reduce(withMatcher, text);
}

/**
 * Text that names no label and no operator: a word that is looked for among the labels' values; null for a selector.
 */
export function wordOf(text: string): string | null {
  const word = text.trim();
  return word === "" || /[{}="'`]/.test(word) || /[!~]$/.test(word) ? null : word;
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
