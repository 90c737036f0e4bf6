/**
 * The heatmap's canvas. In: cells, what is marked. Out: the wish to mark a span for A or B. Pointer and keyboard can do
 * the same, and the line below says in words what the cursor or the pointer is at.
 */
import { useRef, useState } from "preact/hooks";
import { cellAt, cellOf, middleOf, moveCell, spanOf, spanWords } from "../../logic/heatmap/heatmap.ts";
import type { Window } from "../../logic/time/time.ts";
import { zoneNow } from "../../logic/time/zone.ts";
import { MarkerLane } from "../lazyViews.tsx";
import { styleOf, useCanvas, usePageKeys } from "../ui/hooks.ts";
import { type HeatScene, MARGIN, paintGround, paintMarks } from "./paint.ts";

interface Props extends Pick<HeatScene, "cells" | "grid" | "classes" | "gaps" | "theme" | "a" | "b"> {
  /** The cells are of an earlier question. */
  isStale: boolean;
  /** A side that is the rest has no outline of its own. */
  restA: boolean;
  restB: boolean;
  /** What a drag marks; with Alt the other one. */
  letter: "A" | "B";
  onMark: (window: Window, letter: "A" | "B") => void;
  onClear: () => void;
  onRest: () => void;
  /** A run of cells in a few words. */
  wordsFor: (cells: readonly [number, number]) => string;
}

/** Between two moments. */
interface Drag {
  from: number;
  to: number;
  letter: "A" | "B";
}

const KEYS =
  "Arrow keys move between cells, with Shift they select, Enter marks A, Alt Enter B, " +
  "r compares with the rest, Esc clears.";

const other = (letter: "A" | "B") => (letter === "A" ? "B" : "A");
const inOrder = (a: number, b: number): [number, number] => [Math.min(a, b), Math.max(a, b)];

export function HeatCanvas(props: Props) {
  const { cells, grid, classes, gaps, theme, a, b, restA, restB, letter, onMark, onClear, onRest, wordsFor } = props;
  /** The cells as they were drawn last: they stay while marks and the cursor move over them. */
  const ground = useRef<{ picture: HTMLCanvasElement; of: unknown[] } | null>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const [hover, setHover] = useState<number | null>(null);
  /** Cells that hands are at are told by their moments: in a newer answer's grid they are others. */
  const [placed, setPlaced] = useState<number | null>(null);
  const [focused, setFocused] = useState(false);
  /** Where a selection by keys began. */
  const [anchored, setAnchored] = useState<number | null>(null);
  const setCursor = (cell: number) => setPlaced(middleOf(grid, cell));
  const setAnchor = (cell: number | null) => setAnchored(cell === null ? null : middleOf(grid, cell));
  const cursor = placed === null ? 0 : cellOf(grid, placed);
  const anchor = anchored === null ? null : cellOf(grid, anchored);
  const dragged = drag === null ? null : inOrder(cellOf(grid, drag.from), cellOf(grid, drag.to));
  const chosen = dragged ?? (anchor === null ? null : inOrder(anchor, cursor));

  const { box, canvas, style } = useCanvas((context, { width, height, ratio }) => {
    const scene: HeatScene = {
      cells,
      grid,
      classes,
      gaps,
      theme,
      a: restA ? null : a,
      b: restB ? null : b,
      drag: chosen === null ? null : { cells: chosen, letter: drag?.letter ?? letter },
      cursor: focused ? cursor : null,
      width,
      height,
      ratio,
      colour: styleOf(context.canvas),
    };
    const of = [cells, theme, zoneNow(), context.canvas.width, context.canvas.height];
    if (ground.current?.of.every((one, i) => one === of[i]) !== true) {
      const picture = document.createElement("canvas");
      picture.width = context.canvas.width;
      picture.height = context.canvas.height;
      const below = picture.getContext("2d", { alpha: false });
      if (below === null) return;
      paintGround(below, scene);
      ground.current = { picture, of };
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(ground.current.picture, 0, 0);
    paintMarks(context, scene);
  });

  const pointedCell = (event: PointerEvent): number => {
    const bounds = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const width = bounds.width - MARGIN.left - MARGIN.right;
    const height = bounds.height - MARGIN.top - MARGIN.bottom;
    const x = (event.clientX - bounds.left - MARGIN.left) / width;
    return cellAt(grid, x, 1 - (event.clientY - bounds.top - MARGIN.top) / height);
  };
  const take = (first: number, last: number, letter: "A" | "B") => onMark(spanOf(grid, first, last), letter);

  usePageKeys((event) => {
    if (event.key === "Escape") setDrag(null);
  }, drag !== null);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey) return;
    const next = moveCell(grid, cursor, event.key);
    if (next !== null) {
      setAnchor(event.shiftKey ? (anchor ?? cursor) : null);
      setCursor(next);
    } else if (event.key === "Enter" || event.key === " ") {
      take(anchor ?? cursor, cursor, event.altKey ? other(letter) : letter);
      setAnchor(null);
    } else if (event.key === "r") onRest();
    else if (event.key === "Escape") {
      setAnchor(null);
      if (anchor === null) onClear();
    } else return;
    event.preventDefault();
  };

  const at = drag !== null ? chosen : (chosen ?? (focused ? [cursor, cursor] : hover === null ? null : [hover, hover]));
  return (
    <>
      <div class="heat-box" ref={box} aria-busy={props.isStale}>
        {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: an application has its own keys. */}
        <canvas
          ref={canvas}
          style={style}
          role="application"
          aria-roledescription="heatmap"
          aria-label={`Heatmap of time against the offset within each column. ${KEYS}`}
          tabIndex={0}
          data-testid="heatmap"
          onKeyDown={onKeyDown}
          onFocus={(event) => setFocused(event.currentTarget.matches(":focus-visible"))}
          onBlur={() => {
            setFocused(false);
            setAnchor(null);
          }}
          onPointerDown={(event) => {
            if (event.button !== 0) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            const cell = pointedCell(event);
            const moment = middleOf(grid, cell);
            setFocused(false);
            setCursor(cell);
            setDrag({ from: moment, to: moment, letter: event.altKey ? other(letter) : letter });
          }}
          onPointerMove={(event) => {
            const cell = pointedCell(event);
            setHover(cell);
            if (drag !== null) setDrag({ ...drag, to: middleOf(grid, cell) });
          }}
          onPointerUp={() => {
            if (drag !== null && dragged !== null) take(...dragged, drag.letter);
            setDrag(null);
          }}
          onPointerCancel={() => setDrag(null)}
          onPointerLeave={() => setHover(null)}
        />
        <div class="heat-axis">
          <MarkerLane range={spanOf(grid, 0, grid.columns * grid.rows - 1)} />
        </div>
      </div>
      <div class="flame-status" role="status" aria-live="polite" data-testid="heat-cell">
        {at === null ? (
          <span class="dim">{KEYS}</span>
        ) : (
          `${spanWords(spanOf(grid, ...(at as [number, number])))}: ${wordsFor(at as [number, number])}`
        )}
      </div>
    </>
  );
}
