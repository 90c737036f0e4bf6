/**
 * What "spent by" is about. In: the function of the selected frame, and the search. Out: which of them it is of, and
 * the parameters by which the server finds its samples. What was selected last is a frame of what the search finds,
 * so that the frame is meant where there are both.
 */
import { matcherOf, serverPattern } from "../flame/search.ts";
import type { FrameKey } from "../tree/frameKey.ts";
import { type FrameMatch, matchOf } from "../tree/frameMatch.ts";

export type SpentOf =
  | { of: "function"; name: string; match: FrameMatch; isSearched: boolean }
  | { of: "search"; text: string; match: { match: string } }
  /** `isBroken`: the search is no expression, and narrows nothing. */
  | { of: "all"; match: Record<string, never>; isBroken: boolean };

export function spentOf(key: FrameKey | null, search: string): SpentOf {
  const matcher = matcherOf(search);
  if (key !== null) return { of: "function", name: key.name, match: matchOf(key), isSearched: matcher !== null };
  const isBroken = matcher !== null && "error" in matcher;
  if (matcher === null || isBroken) return { of: "all", match: {}, isBroken };
  return { of: "search", text: search.trim(), match: { match: serverPattern(search) } };
}
