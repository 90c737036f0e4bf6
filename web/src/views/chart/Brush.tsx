/**
 * Picks a window by dragging across the plot, and tells what the pointer is over; a click takes it. With keys: arrows
 * move the line (Shift: ten times as far), Enter sets where a window begins and where it ends, Escape gives up, + and -
 * zoom.
 */
import { useRef, useState } from "preact/hooks";
import { duration } from "../../logic/text/format.ts";
import { clock, type Window } from "../../logic/time/time.ts";
import { lengthOf, ordered } from "../../logic/time/windows.ts";
import { momentAt, type Plot, pixelOf } from "./place.ts";

interface Props {
  plot: Plot;
  onPick: (window: Window) => void;
  onHover: (hover: Hover | null) => void;
  /** A click that was no drag. */
  onTake: (event: PointerEvent) => void;
  /** The right button, or what else asks for a menu. */
  onMenu?: (event: MouseEvent) => void;
  /** Zooms around a moment: in for positive steps. */
  onZoom: (moment: number, steps: number) => void;
  hover: Hover | null;
  /** What lies under the pointer, in a few words. */
  caption: string;
  /** What is read to who does not see the line: the level at it. */
  spoken: string;
}

/** A place of the plot: a moment, and how high above the axis as a part of the plot's height. */
export interface Hover {
  moment: number;
  height: number;
}

/** A shorter drag is a click with a shaky hand. */
const LEAST_PIXELS = 4;
const KEY_PART = 1 / 100;
const KEY_ZOOM = 3;

export function Brush({ plot, onPick, onHover, onTake, onMenu, onZoom, hover, caption, spoken }: Props) {
  /** Where the pointer came down, and at which moment: an answer in the middle of a drag may bring another range. */
  const begin = useRef<{ x: number; moment: number } | null>(null);
  /** Moments. */
  const [drag, setDrag] = useState<[number, number] | null>(null);
  /** Where a window begins that is being chosen with keys. */
  const [mark, setMark] = useState<number | null>(null);
  const place = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return Math.min(Math.max(event.clientX - box.left, 0), plot.width);
  };
  const hoverAt = (event: PointerEvent): Hover => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return { moment: momentAt(plot, place(event)), height: 1 - (event.clientY - box.top) / box.height };
  };
  const end = (event: PointerEvent, picked: boolean) => {
    const from = begin.current;
    begin.current = null;
    setDrag(null);
    const x = place(event);
    if (!picked || from === null) return;
    if (Math.abs(x - from.x) >= LEAST_PIXELS) onPick(ordered(from.moment, momentAt(plot, x)));
    else onTake(event);
  };
  const { range } = plot;
  const line = hover?.moment ?? (range.from + range.until) / 2;
  const onKeyDown = (event: KeyboardEvent) => {
    const direction = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (direction !== 0) {
      const by = direction * lengthOf(range) * KEY_PART * (event.shiftKey ? 10 : 1);
      onHover({ moment: Math.min(Math.max(line + by, range.from), range.until), height: Number.POSITIVE_INFINITY });
    } else if (event.key === "Enter" && mark === null) setMark(line);
    else if (event.key === "Enter" && mark !== null) {
      setMark(null);
      onPick(ordered(mark, line));
    } else if (event.key === "Escape") setMark(null);
    else if (event.key === "+" || event.key === "=") onZoom(line, KEY_ZOOM);
    else if (event.key === "-") onZoom(line, -KEY_ZOOM);
    else return;
    event.preventDefault();
  };
  const chosen = drag ?? (mark === null ? null : [mark, line]);
  const pixels = chosen?.map((moment) => Math.min(Math.max(pixelOf(plot, moment), 0), plot.width)) ?? [0];
  const [left, right] = [Math.min(...pixels), Math.max(...pixels)];
  return (
    <div
      class="brush"
      data-testid="brush"
      role="slider"
      tabIndex={0}
      aria-label="Moment of the chart. Enter begins a window and ends it, plus and minus zoom."
      aria-valuemin={range.from}
      aria-valuemax={range.until}
      aria-valuenow={Math.round(line)}
      aria-valuetext={`${clock(line)}, ${spoken}${mark === null ? "" : `, window from ${clock(mark)}`}`}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        begin.current = { x: place(event), moment: momentAt(plot, place(event)) };
        setMark(null);
      }}
      onPointerMove={(event) => {
        onHover(hoverAt(event));
        if (begin.current !== null) setDrag([begin.current.moment, momentAt(plot, place(event))]);
      }}
      onPointerUp={(event) => end(event, true)}
      onPointerCancel={(event) => end(event, false)}
      onPointerLeave={() => onHover(null)}
      onContextMenu={onMenu}
      onBlur={() => {
        setMark(null);
        onHover(null);
      }}
      onKeyDown={onKeyDown}
    >
      {hover !== null && drag === null && (
        <div class="hover-line" style={{ left: `${pixelOf(plot, hover.moment)}px` }}>
          {caption !== "" && (
            <span class={pixelOf(plot, hover.moment) > plot.width * 0.7 ? "caption before" : "caption"}>{caption}</span>
          )}
        </div>
      )}
      {chosen !== null && (
        <div class="brush-range" style={{ left: `${left}px`, width: `${right - left}px` }}>
          <span>{duration((momentAt(plot, right) - momentAt(plot, left)) / 1000)}</span>
        </div>
      )}
    </div>
  );
}
