/**
 * Values that hold a word. In: the word, and names of values that are numbers. Out: a regular expression as the server
 * takes it.
 */
import { anyOf } from "./selector.ts";

/** A selector has 16 KiB at most; a container's id is 64 characters. */
const MOST_NAMED = 100;

/** Matches values that hold the word in any case, and those whose name does. */
export function holding(word: string, names: ReadonlyMap<string, string> | null): string {
  const low = word.toLowerCase();
  const named = [...(names ?? [])].filter(([, name]) => name.toLowerCase().includes(low)).slice(0, MOST_NAMED);
  return [`(?is).*${anyOf([word])}.*`, ...named.map(([value]) => anyOf([value]))].join("|");
}
