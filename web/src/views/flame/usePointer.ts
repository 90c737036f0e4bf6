/**
 * What pointer and wheel do on the graph and on its map. In: what is in sight. Out: the frame below the pointer, and
 * handlers that move what is in sight; a click and the right button are told to who uses them.
 */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import {
  centred,
  hitAt,
  moved,
  partOf,
  partText,
  type Sliver,
  scaled,
  type View,
  viewOf,
} from "../../logic/flame/layout.ts";
import { frameName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import type { Drawn } from "../ui/hooks.ts";
import { isZoom, scrollPageFirst } from "../ui/wheel.ts";
import { ROW, viewAt } from "./paint.ts";
import type { Range } from "./useRange.ts";
import type { Scroll } from "./useScroll.ts";

interface Given {
  tree: Tree;
  focus: number;
  flame: boolean;
  onPoint: (name: string | null) => void;
}

interface Wishes {
  onZoom: (node: number) => void;
  /** The menu of a frame is wanted, at so many pixels of the canvas. */
  onMenu: (node: number, x: number) => void;
}

/** The frame below the pointer; of several that are drawn together, the widest. */
interface Pointed {
  tree: Tree;
  node: number;
  sliver: Sliver | null;
  x: number;
  y: number;
}

/** Of the width, for each pixel that the wheel turns. */
const WHEEL = 0.003;
/** Pixels that a press may move and still be a click. */
const DRAG_FROM = 4;

export function usePointer(
  { tree, focus, flame, onPoint }: Given,
  { box, canvas, size }: Drawn,
  map: RefObject<HTMLCanvasElement | null>,
  range: Range,
  scroll: Scroll,
  { onZoom, onMenu }: Wishes,
) {
  const { limits, view } = range;
  const [under, setUnder] = useState<Pointed | null>(null);
  const leave = () => setUnder(null);
  const show = (seen: View) => {
    leave();
    range.show(seen);
  };

  /** The place of the tree's width that lies below the pointer. */
  const positionOf = (event: MouseEvent, of: HTMLElement, shown: View): number => {
    const bounds = of.getBoundingClientRect();
    return shown.from + ((event.clientX - bounds.left) / Math.max(1, bounds.width)) * (shown.until - shown.from);
  };
  const pointAt = (event: Pick<MouseEvent, "clientX" | "clientY">): Pointed | null => {
    const element = canvas.current;
    if (element === null || box.current === null) return null;
    const bounds = element.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const place = Math.floor((event.clientY - bounds.top + box.current.scrollTop) / ROW);
    if (x < 0 || x >= size.width || place < 0 || place >= scroll.rows) return null;
    const row = scroll.rowAt(place);
    const ratio = devicePixelRatio || 1;
    const shown = viewAt({ tree, focus, view: view.current }, row);
    const hit = hitAt(tree, row, shown, Math.floor(size.width * ratio), Math.floor(x * ratio));
    return hit === null ? null : { tree, ...hit, x: event.clientX, y: event.clientY };
  };

  // With Ctrl or ⌘ the wheel goes into the width, with Shift along it; alone it scrolls.
  const onWheel = (event: WheelEvent) => {
    const element = canvas.current;
    if (element === null) return;
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    const span = view.current.until - view.current.from;
    if (isZoom(event)) {
      const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY * WHEEL)));
      show(scaled(view.current, limits, positionOf(event, element, view.current), factor));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY))
      show(moved(view.current, limits, (sideways / Math.max(1, size.width)) * span));
    else return scrollPageFirst(event);
    event.preventDefault();
  };

  /** What was in sight is told as a part of the width: an answer in the middle of a drag has another one. */
  const drag = useRef<{ x: number; y: number; part: string; scrollTop: number; moves: boolean } | null>(null);
  /** True while the graph is dragged. */
  const dragged = (event: PointerEvent): boolean => {
    const from = drag.current;
    if (from === null || box.current === null || (event.buttons & 1) === 0) return false;
    const [x, y] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.moves && Math.hypot(x, y) < DRAG_FROM) return false;
    if (!from.moves) canvas.current?.setPointerCapture(event.pointerId);
    from.moves = true;
    box.current.scrollTop = from.scrollTop - y;
    const seen = partOf(from.part, limits);
    const span = seen.until - seen.from;
    show(moved(seen, limits, (-x / Math.max(1, size.width)) * span));
    return true;
  };

  const onMap = (event: PointerEvent) => {
    const [element, scroller] = [map.current, box.current];
    if (element === null || scroller === null || (event.buttons & 1) === 0) return;
    const { first, rows } = scroll.whole;
    const bounds = element.getBoundingClientRect();
    const line = ((event.clientY - bounds.top) / bounds.height) * rows;
    const row = first + (flame ? rows - 1 - line : line);
    scroller.scrollTop = scroll.placeOf(row) * ROW - size.height / 2;
    show(centred(view.current, limits, positionOf(event, element, viewOf(tree, ROOT))));
  };

  const onCanvas = {
    onWheel,
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      const { clientX: x, clientY: y } = event;
      const part = partText(view.current, limits);
      drag.current = { x, y, part, scrollTop: box.current?.scrollTop ?? 0, moves: false };
    },
    onPointerMove: (event: PointerEvent) => {
      if (event.pointerType === "touch" || dragged(event)) return;
      const at = pointAt(event);
      setUnder(at);
      onPoint(at === null ? null : frameName(tree, at.node));
    },
    onPointerLeave: () => {
      leave();
      onPoint(null);
    },
    onClick: (event: MouseEvent) => {
      const was = drag.current;
      drag.current = null;
      const at = was?.moves ? null : pointAt(event);
      if (at !== null) onZoom(at.node);
    },
    onContextMenu: (event: MouseEvent) => {
      const at = pointAt(event);
      if (at === null) return;
      event.preventDefault();
      onMenu(at.node, event.clientX - (canvas.current?.getBoundingClientRect().left ?? 0));
    },
  };

  // Behind the hooks that place what is in sight: what a newer answer has put below a pointer that rests.
  useLayoutEffect(() => {
    setUnder((was) => was && pointAt({ clientX: was.x, clientY: was.y }));
  }, [tree]);

  // A frame of the tree before would be another frame in this one.
  const hover = under !== null && under.tree === tree ? under : null;
  return { hover, leave, show, onCanvas, onMap };
}
