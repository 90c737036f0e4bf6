/** Functions by a word of their names: those of the graph on the screen, and others that the server found. */
import { exactPattern } from "../../logic/flame/search.ts";
import { functionsLike } from "../../logic/tree/functions.ts";
import { navigate } from "../address/page.ts";
import { upright } from "./tree.ts";

export interface NamedFunction {
  name: string;
  /** There is a graph, and it lacks the function: it ran elsewhere, or at another time. */
  isElsewhere: boolean;
}

/** `found`: functions that hold the word, as the server has them. Of the graph's and of the others at most so many. */
export function functionsNamed(word: string, found: readonly string[], most: number): NamedFunction[] {
  const tree = upright.peek();
  const here = tree === null ? [] : functionsLike(tree, word, Number.POSITIVE_INFINITY);
  const known = new Set(here);
  const others = found.filter((name) => !known.has(name));
  const isElsewhere = tree !== null;
  return [
    ...here.slice(0, most).map((name) => ({ name, isElsewhere: false })),
    ...others.slice(0, most).map((name) => ({ name, isElsewhere })),
  ];
}

/** Looks for exactly this function: it is marked in the graph, and its share is told, or that there is none. */
export function findFunction(name: string): void {
  navigate({ match: exactPattern(name) });
}
