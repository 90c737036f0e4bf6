/** The frame that is selected, and the functions that the pointer is on. */
import { batch, computed, signal } from "@preact/signals";
import { findSelection, selectionOf } from "../../logic/tree/focus.ts";
import type { Tree } from "../../logic/tree/tree.ts";
import { fields, navigate, type PageState } from "../address/page.ts";
import { tree } from "./tree.ts";

/** What was selected on this screen: siblings of one name, in several modules, are one text in the address. */
const picked = signal<{ tree: Tree; text: string; node: number } | null>(null);

/** The frame that the keyboard or a click selected; null for none, and where this tree has it not. */
export const selected = computed(() => {
  const shown = tree.value.tree;
  const text = fields.frame.value;
  if (shown === null) return null;
  const known = picked.value;
  return known?.tree === shown && known.text === text ? known.node : findSelection(shown, text);
});

/**
 * Selects a frame, or none, with what else changes. Steps from frame to frame that follow each other closely are one
 * for Back.
 */
export function select(node: number | null, change: Partial<PageState> = {}, gesture = "select"): void {
  const shown = tree.peek().tree;
  if (shown === null) return;
  const text = selectionOf(shown, node);
  batch(() => {
    picked.value = node === null ? null : { tree: shown, text, node };
    navigate({ frame: text, ...change }, gesture);
  });
}

/** The name of the function that the pointer is on: in the graph, and in the table. Each outlines it in the other. */
export const pointedFrame = signal<string | null>(null);
export const pointedRow = signal<string | null>(null);
