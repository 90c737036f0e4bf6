/**
 * What makes frames the same function. In: kinds and languages as the server tells them. Out: one word of both, by
 * which the page colours and names frames, and the server looks for them.
 */
import type { DiffTopRow } from "../../api/types.ts";

/** `kind` is the language where there is one: of interpreted frames of two languages each is a function of its own. */
export interface FrameKey {
  name: string;
  module: string;
  kind: string;
}

/** Words of an answer's kinds, by their numbers. */
export function kindsOfAnswer({
  kinds,
  languages,
}: {
  kinds: readonly string[];
  languages: readonly string[];
}): string[] {
  return kinds.map((kind, i) => languages[i] || kind);
}

type Row = Pick<DiffTopRow, "name" | "module" | "kind" | "language">;

/** The function of a row of a table. */
export function rowKey({ name, module = "", kind = "", language = "" }: Row): FrameKey {
  return { name, module, kind: language || kind };
}

export function isSameFunction(a: FrameKey, b: FrameKey): boolean {
  return a.name === b.name && a.module === b.module && a.kind === b.kind;
}
