/**
 * What pointer and wheel do on a timeline. In: the chart and what of it is in sight. Out: the frame below the pointer,
 * and handlers: with Ctrl or ⌘ the wheel zooms, with Shift it moves, a drag moves, a click
 * selects, a double click fits a frame.
 */
import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Chart, fitted, nodeAt, panned, type Range, zoomed } from "../../logic/flame/timeline.ts";
import { ROOT } from "../../logic/tree/tree.ts";
import { ROW } from "../flame/paint.ts";
import type { Size } from "../ui/hooks.ts";
import { isZoom, scrollPageFirst } from "../ui/wheel.ts";

interface Given {
  chart: Chart;
  /** Unix milliseconds at which the chart begins. */
  from: number;
  range: Range;
  box: RefObject<HTMLDivElement | null>;
  canvas: RefObject<HTMLCanvasElement | null>;
  size: Size;
  onRange: (range: Range) => void;
  onSelect: (box: number | null) => void;
}

/** A shorter drag is a click with a shaky hand. */
const LEAST_PIXELS = 4;

export function usePointer({ chart, from, range, box, canvas, size, onRange, onSelect }: Given) {
  const { tree, extentNs } = chart;
  const span = range.until - range.from;
  const [under, setHover] = useState<{ chart: Chart; box: number; x: number; y: number } | null>(null);
  // A frame of the chart before would be another frame in this one.
  const hover = under?.chart === chart ? under : null;
  /** A newer answer begins at another moment: what was in sight counts from that of its own. */
  const drag = useRef<{ x: number; y: number; from: number; range: Range; top: number; moved: boolean } | null>(null);

  const boxAt = (event: MouseEvent): number | null => {
    const bounds = canvas.current?.getBoundingClientRect();
    if (bounds === undefined || box.current === null) return null;
    const depth = Math.floor((event.clientY - bounds.top + box.current.scrollTop) / ROW);
    return nodeAt(tree, depth, range.from + ((event.clientX - bounds.left) / bounds.width) * span);
  };

  const onCanvas = {
    onWheel: (event: WheelEvent) => {
      const bounds = canvas.current?.getBoundingClientRect();
      if (bounds === undefined) return;
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (isZoom(event)) {
        onRange(zoomed(range, Math.exp(event.deltaY / 400), (event.clientX - bounds.left) / bounds.width, extentNs));
      } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        onRange(panned(range, (sideways / bounds.width) * span, extentNs));
      } else return scrollPageFirst(event);
      event.preventDefault();
    },
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      canvas.current?.setPointerCapture(event.pointerId);
      const top = box.current?.scrollTop ?? 0;
      drag.current = { x: event.clientX, y: event.clientY, from, range, top, moved: false };
    },
    onPointerMove: (event: PointerEvent) => {
      const at = drag.current;
      if (at === null) {
        const pointed = boxAt(event);
        setHover(
          pointed === null || pointed === ROOT ? null : { chart, box: pointed, x: event.clientX, y: event.clientY },
        );
        return;
      }
      const by = event.clientX - at.x;
      if (!at.moved && Math.max(Math.abs(by), Math.abs(event.clientY - at.y)) < LEAST_PIXELS) return;
      at.moved = true;
      setHover(null);
      if (box.current !== null) box.current.scrollTop = at.top - (event.clientY - at.y);
      const moved = (-by / Math.max(size.width, 1)) * (at.range.until - at.range.from);
      onRange(panned(at.range, moved + (at.from - from) * 1e6, extentNs));
    },
    onPointerUp: (event: PointerEvent) => {
      if (drag.current?.moved === false) onSelect(boxAt(event));
      drag.current = null;
    },
    onPointerCancel: () => {
      drag.current = null;
    },
    onPointerLeave: () => setHover(null),
    onDblClick: (event: MouseEvent) => {
      const pointed = boxAt(event);
      if (pointed !== null) onRange(fitted(chart, pointed));
    },
  };
  return { hover, onCanvas };
}
