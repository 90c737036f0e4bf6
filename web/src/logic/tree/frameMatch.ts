/**
 * One frame as the server looks for it (`match_frame`, `match_path`, `server/docs/api.md`): of its kind and module, and
 * at one place below its callers, where its namesakes elsewhere don't count. In: a frame of the tree as it was sent.
 * Out: parameters.
 */
import type { FrameKey } from "./frameKey.ts";
import { isRow } from "./rows.ts";
import { ancestors, frameName, kindName, moduleName, type Tree } from "./tree.ts";

/** The server takes no longer one. */
const MOST_FRAMES = 1_024;
/** An address has to carry it, escaped. */
const LONGEST_TEXT = 8_000;

export type FrameMatch = { match_frame: string } | { match_path: string };

function frameText({ kind, module, name }: FrameKey): string {
  const escaped = (text: string) => text.replace(/[\\;]/g, "\\$&");
  return `${kind},${escaped(module).replace(/,/g, "\\,")},${escaped(name)}`;
}

/** All frames of a function of a module. */
export function matchOf(key: FrameKey): FrameMatch {
  return { match_frame: frameText(key) };
}

/** The frame at its place, whatever its rows; null where the way to it is too long to be asked for. */
export function pathMatchOf(tree: Tree, node: number): FrameMatch | null {
  const way = ancestors(tree, node).filter((at) => !isRow(tree, at));
  const text = way
    .map((i) => frameText({ kind: kindName(tree, i), module: moduleName(tree, i), name: frameName(tree, i) }))
    .join(";");
  return way.length > MOST_FRAMES || encodeURIComponent(text).length > LONGEST_TEXT ? null : { match_path: text };
}
