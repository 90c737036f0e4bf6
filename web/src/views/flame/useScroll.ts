/**
 * Which rows there are, and where the box is scrolled to. In: the tree, what of its width is in sight, and the size of
 * the box. Out: places of rows. The root stays in sight, and what is selected comes into it.
 */
import type { RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { partOf, rowsInSight, viewOf } from "../../logic/flame/layout.ts";
import { scrollToRow } from "../../logic/table/rows.ts";
import { selectionOf } from "../../logic/tree/focus.ts";
import { ROOT, type Tree } from "../../logic/tree/tree.ts";
import type { Drawn } from "../ui/hooks.ts";
import { ROW } from "./paint.ts";

interface Given {
  tree: Tree;
  subject: string;
  focus: number;
  part: string;
  flame: boolean;
  selected: number | null;
}

/** Rows whose frames are all narrower than this (CSS pixels) don't make the graph taller; they are told below it. */
const ROW_WORTH = 0.3;

type Subject = Pick<Given, "tree" | "subject">;

/** Whether a tree is a newer answer to what the other one answers. */
const isAgain = (was: Subject, now: Subject) =>
  was.tree !== now.tree && was.subject === now.subject && was.tree.shape === now.tree.shape;

export type Scroll = ReturnType<typeof useScroll>;

/** `drawnTop`: where the box was scrolled to when its picture was drawn. */
export function useScroll(
  { tree, subject, focus, part, flame, selected }: Given,
  { box, size, drawSoon }: Drawn,
  drawnTop: RefObject<number>,
) {
  const inSight = useMemo(() => {
    const limits = viewOf(tree, focus);
    const shown = partOf(part, limits);
    const zoom = (limits.until - limits.from) / (shown.until - shown.from);
    return rowsInSight(tree, focus, Math.max(1, size.width), ROW_WORTH / zoom);
  }, [tree, focus, size.width, part]);
  const filled = inSight.last - inSight.first + 1;
  // A short graph with its root at the bottom stands on the bottom of the box.
  const rows = flame ? Math.max(filled, Math.floor(size.height / ROW)) : filled;
  const all = useMemo(() => rowsInSight(tree, ROOT, Math.max(1, size.width), ROW_WORTH), [tree, size.width]);
  const whole = { first: Math.min(all.first, inSight.first), rows: Math.max(all.last, inSight.last) - all.first + 1 };

  const placeOf = (row: number) => (flame ? rows - 1 - (row - inSight.first) : row - inSight.first);
  const rowAt = (place: number) => inSight.first + (flame ? rows - 1 - place : place);
  const reveal = (node: number) => {
    const element = box.current;
    if (element === null) return;
    element.scrollTop = scrollToRow(placeOf(tree.depth[node] as number), ROW, element.scrollTop, size.height);
  };

  // The root is brought into sight once the graph's height is known or changes; where another frame is zoomed, or
  // another part of the width has other rows, all stays where it was.
  const placed = useRef<(Given & { rows: number; root: number }) | null>(null);
  // What lies below the box, in pixels: a flame stands on its root, also where the box becomes lower, as when lists
  // come that stand above it.
  const last = useRef({ top: 0, height: 0, below: 0 });
  const measureBelow = (height: number) => {
    const top = box.current?.scrollTop ?? 0;
    last.current = { top, height, below: rows * ROW - top - height };
  };
  const onScroll = () => {
    // The browser tells of a scroll a frame later: a box that has another height by then is about to be placed anew,
    // and what lies below it now is nobody's wish.
    if (box.current?.clientHeight === last.current.height) measureBelow(last.current.height);
    // What was scrolled here is drawn already.
    if (box.current?.scrollTop !== drawnTop.current) drawSoon();
  };
  useLayoutEffect(() => {
    const element = box.current;
    const was = placed.current;
    const root = placeOf(tree.rootRow) * ROW;
    placed.current = { tree, subject, focus, part, flame, selected, rows, root };
    if (element === null) return;
    const isSame = was !== null && was.tree === tree && was.flame === flame;
    // A newer answer leaves the root where it was, and with it what is read: also where the browser has moved a box
    // that has fewer rows now.
    if (was !== null && was.flame === flame && isAgain(was, { tree, subject })) {
      if (root !== was.root) element.scrollTop = last.current.top + root - was.root;
    } else if (isSame && (was.part !== part || was.focus !== focus)) {
      // A zoom leaves frames where they are, as another part of the width does.
      if (flame) element.scrollTop += (rows - was.rows) * ROW;
    } else if (isSame && was.rows === rows) {
      const end = rows * ROW - element.clientHeight;
      // A person may have scrolled in the frame in which the height changed; a box that became higher is moved to its
      // end by the browser.
      if (element.scrollTop !== last.current.top && element.scrollTop < end) measureBelow(last.current.height);
      if (flame) element.scrollTop = end - last.current.below;
    } else {
      if (tree.shape === "sandwich") element.scrollTop = root - size.height / 2;
      else element.scrollTop = flame ? rows * ROW : 0;
    }
    measureBelow(element.clientHeight);
  }, [flame, rows, tree, size.height]);

  // What the search or another view has selected comes into sight.
  const revealed = useRef<(Pick<Given, "tree" | "subject" | "selected"> & { height: number }) | null>(null);
  useLayoutEffect(() => {
    const was = revealed.current;
    revealed.current = { tree, subject, selected, height: size.height };
    if (selected === null || size.height === 0) return;
    // A newer answer brings nothing into sight that a hand has scrolled out of it.
    const isKnown =
      was?.height === size.height &&
      isAgain(was, { tree, subject }) &&
      selectionOf(was.tree, was.selected) === selectionOf(tree, selected);
    // The panel that opens below takes a part of the height.
    if (!isKnown) reveal(selected);
  }, [selected, rows, size.height, tree]);

  return { inSight, rows, whole, placeOf, rowAt, reveal, onScroll };
}
