/**
 * Text that others wrote, so that it shows what it is. In: any text. Out: the same with a name for each character that
 * is not seen but changes how others are read: controls, marks of direction, characters without width. What is long
 * is cut, and says how long it is.
 */
import { count } from "./format.ts";

/** How much of one text is shown at once, in letters; of one that is told beside it, such as a title. */
export const MOST_SHOWN = 1_000;
export const MOST_TOLD = 2_000;

/** What nothing has to be done to: most texts. */
const USUAL = /^[\n -~]*$/;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;
/** More marks on one letter than any language has: they would cover the lines above and below. */
const PILED = /(\p{M}{4})\p{M}+/gu;

function named(character: string): string {
  return `⟨U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** Whether a text is what it looks like, and short enough to be shown whole. */
export function isPlain(text: string, most = MOST_SHOWN): boolean {
  return text.length <= most && USUAL.test(text);
}

/** With its lines, as long as a text that is shown may be. */
export function shownText(text: string, most = MOST_SHOWN): string {
  return isPlain(text, most) ? text : plainText(text, most);
}

/** In one line: breaks of lines are spaces. */
export function plainLine(text: string, most: number): string {
  return plain(text.replace(/[\r\n\t]+/g, " "), most, (c) => named(c));
}

/** With its lines. */
export function plainText(text: string, most: number): string {
  return plain(text.replace(/\r\n?/g, "\n"), most, (c) => (c === "\n" || c === "\t" ? c : named(c)));
}

function plain(text: string, most: number, name: (character: string) => string): string {
  // A cut between the halves of one character would leave what is none.
  const isCut = text.length > most;
  const part = isCut ? text.slice(0, most).replace(/[\ud800-\udbff]$/, "") : text;
  const shown = part.replace(PILED, "$1").replace(UNSEEN, name);
  return isCut ? `${shown}… (${count(text.length)} characters)` : shown;
}
