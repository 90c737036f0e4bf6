/** Functions of the graph on the screen, by a word of their names. */
import { exactPattern } from "../../logic/flame/search.ts";
import { functionsLike } from "../../logic/tree/functions.ts";
import { navigate } from "../address/page.ts";
import { upright } from "./tree.ts";

export function functionNames(word: string, most: number): string[] {
  const tree = upright.peek();
  return tree === null ? [] : functionsLike(tree, word, most);
}

/** Looks for exactly this function: it is marked in the graph, and its share is told. */
export function findFunction(name: string): void {
  navigate({ match: exactPattern(name) });
}
