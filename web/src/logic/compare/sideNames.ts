/**
 * What the two sides of a comparison are called. In: their selectors, and whether A was before B. Out: words for
 * figures, tables and sentences. "Before" and "after" are said of one selection at two times only; two selections have
 * the names of what they select.
 */
import type { Change } from "../colour.ts";
import { type LabelMatcher, parseSelector } from "../labels/selector.ts";
import { shortValue } from "../labels/valueNames.ts";
import { fitName } from "../text/names.ts";

export interface SideNames {
  /** Side A, side B. */
  names: readonly [string, string];
  /** One selection, A before B. */
  inTurn: boolean;
}

/** Characters of a name. */
const ROOM = 28;
function same(a: LabelMatcher, b: LabelMatcher): boolean {
  return a.label === b.label && a.operator === b.operator && a.value === b.value;
}

/** What a selector asks beyond another one; null where there is nothing, or one can't be read. */
function beyond(text: string, other: string): string | null {
  const others = parseSelector(other);
  const own = parseSelector(text)?.filter((matcher) => !others?.some((one) => same(one, matcher)));
  if (others === null || own === undefined || own.length === 0) return null;
  const said = own
    .map(({ operator, value }) => (operator.startsWith("!") ? "not " : "") + shortValue(value))
    .join(", ");
  return said.length > ROOM ? fitName(said, ROOM) : said;
}

export function sideNamesOf(baseQuery: string, query: string, isTurn: boolean): SideNames {
  if (baseQuery === query) return { names: isTurn ? ["before", "after"] : ["A", "B"], inTurn: isTurn };
  const [a, b] = [beyond(baseQuery, query), beyond(query, baseQuery)];
  // One that asks nothing more has all that the other is a part of.
  const names = [a ?? (b === null ? "A" : "all"), b ?? (a === null ? "B" : "all")] as const;
  return { names: names[0] === names[1] ? ["A", "B"] : names, inTurn: false };
}

/** `A, before`, `B, kubelet`, or the letter alone. */
export function sideText({ names }: SideNames, at: 0 | 1): string {
  const letter = at === 0 ? "A" : "B";
  return names[at] === letter ? letter : `${letter}, ${names[at]}`;
}

/**
 * `12 → 40` of one selection at two times, `A 12, B 40` of anything else: an arrow reads like a change in time. For
 * whatever is told of both sides.
 */
export function bothText(before: string, after: string, { inTurn }: Pick<SideNames, "inTurn">): string {
  return inTurn ? `${before} → ${after}` : `A ${before}, B ${after}`;
}

/** What a change is called between these sides. */
export function changeWords({ names, inTurn }: SideNames, change: Change): string {
  if (change === "same") return "no significant change";
  const [a, b] = names;
  if (inTurn) return { grew: "grew", shrank: "shrank", new: "new: only after", gone: "gone: only before" }[change];
  return { grew: `more in ${b}`, shrank: `more in ${a}`, new: `only in ${b}`, gone: `only in ${a}` }[change];
}
