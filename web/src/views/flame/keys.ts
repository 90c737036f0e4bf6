/**
 * What a key means on a flamegraph. In: the key, and what is zoomed, selected and in sight. Out: a command, or null for
 * a key that means nothing there. It knows no element and changes nothing.
 */
import { isVisible, moved, neighbour, type Step, scaled, type View, viewOf } from "../../logic/flame/layout.ts";
import { nextHit, type Search } from "../../logic/flame/search.ts";
import { ROOT, type Tree } from "../../logic/tree/tree.ts";

export interface KeyScene {
  tree: Tree;
  focus: number;
  selected: number | null;
  search: Search | null;
  /** Root at the bottom. */
  flame: boolean;
  /** What of the width is in sight, and all of the zoomed frame. */
  view: View;
  limits: View;
}

export type KeyCommand =
  | { does: "menu"; node: number }
  | { does: "show"; view: View }
  | { does: "select"; node: number }
  /** Selects a match; what hides it is zoomed out of. */
  | { does: "find"; node: number; isHidden: boolean }
  | { does: "zoom"; node: number }
  | { does: "reset" }
  /** One of the actions on a frame, or on the whole tree where none is selected. */
  | { does: "act"; node: number | null; key: string };

type Key = Pick<KeyboardEvent, "key" | "shiftKey" | "ctrlKey" | "metaKey" | "altKey">;

/** What of the width a key goes along it, and what it leaves of it. */
const ALONG: Record<string, number> = { ArrowLeft: -0.25, ArrowRight: 0.25 };
const INTO: Record<string, number> = { "+": 0.8, "-": 1.25 };
const STEPS: Record<string, Step> = { ArrowLeft: "left", ArrowRight: "right", Home: "first", End: "last" };

export function commandOf(event: Key, scene: KeyScene): KeyCommand | null {
  const { tree, focus, selected, search } = scene;
  const { key } = event;
  const at = selected !== null && isVisible(tree, selected, focus) ? selected : focus;
  if (key === "ContextMenu" || (key === "F10" && event.shiftKey)) return { does: "menu", node: at };
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const view = look(event, scene, at);
  if (view !== null) return { does: "show", view };
  const next = walk(key, scene, at);
  if (next !== null) return { does: "select", node: next };
  if (key === "Enter" || key === " ") return { does: "zoom", node: at };
  if (key === "Escape") return { does: "reset" };
  if (key === "Backspace") return { does: "zoom", node: Math.max(ROOT, tree.parent[focus] as number) };
  if ((key === "n" || key === "N") && search !== null) {
    const hit = nextHit(tree, search.hits, at, key === "n" ? 1 : -1);
    return hit === null ? null : { does: "find", node: hit, isHidden: !isVisible(tree, hit, focus) };
  }
  return { does: "act", node: selected === null ? null : at, key };
}

/** What the wheel does, by keys: into the width around a frame, and along it. */
function look({ key, shiftKey }: Key, { tree, view, limits }: KeyScene, at: number): View | null {
  const along = shiftKey ? ALONG[key] : undefined;
  const into = INTO[key];
  const { from, until } = view;
  if (along !== undefined) return moved(view, limits, along * (until - from));
  if (into === undefined) return null;
  const { from: begin, until: end } = viewOf(tree, at);
  const middle = (Math.max(from, begin) + Math.min(until, end)) / 2;
  return scaled(view, limits, Math.min(Math.max(middle, from), until), into);
}

/** The frame to which a key walks; without a selection, up and down begin at the zoomed one. */
function walk(key: string, { tree, focus, selected, flame }: KeyScene, at: number): number | null {
  if (key !== "ArrowUp" && key !== "ArrowDown") {
    const step = STEPS[key];
    return step === undefined ? null : neighbour(tree, at, step, focus);
  }
  if (selected === null) return focus;
  const away = key === (flame ? "ArrowUp" : "ArrowDown");
  // Above the root of a sandwich stand callers: away from it is up.
  const isCaller = at >= tree.callersFrom || (at === ROOT && tree.callersFrom < tree.size && !away);
  if (at === ROOT && isCaller) return tree.callersFrom;
  return neighbour(tree, at, away !== isCaller ? "down" : "up", focus);
}
