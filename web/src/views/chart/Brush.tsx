/** Picks a window by dragging across the plot, and tells what the pointer is over; a click takes it. */
import { useRef, useState } from "preact/hooks";
import { duration } from "../../logic/format.ts";
import type { Window } from "../../logic/time.ts";
import { ordered } from "../../logic/windows.ts";
import type { Plot } from "./TimeChart.tsx";

interface Props {
  plot: Plot;
  onPick: (window: Window) => void;
  onHover: (hover: Hover | null) => void;
  /** A click that was no drag. */
  onTake: (hover: Hover) => void;
  hover: Hover | null;
  /** What lies under the pointer, in a few words. */
  caption: string;
}

/** A place of the plot: a moment, and how high above the axis as a part of the plot's height. */
export interface Hover {
  moment: number;
  height: number;
}

/** A shorter drag is a click with a shaky hand. */
const LEAST_PIXELS = 4;

export function momentAt(plot: Plot, x: number): number {
  const { from, until } = plot.range;
  return from + (Math.min(Math.max(x, 0), plot.width) / plot.width) * (until - from);
}

export function pixelOf(plot: Plot, moment: number): number {
  const { from, until } = plot.range;
  return ((moment - from) / (until - from)) * plot.width;
}

export function Brush({ plot, onPick, onHover, onTake, hover, caption }: Props) {
  const begin = useRef<number | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
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
    if (Math.abs(x - from) >= LEAST_PIXELS) onPick(ordered(momentAt(plot, from), momentAt(plot, x)));
    else onTake(hoverAt(event));
  };
  const [left, right] = drag === null ? [0, 0] : [Math.min(...drag), Math.max(...drag)];
  return (
    <div
      class="brush"
      data-testid="brush"
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        begin.current = place(event);
      }}
      onPointerMove={(event) => {
        const x = place(event);
        onHover(hoverAt(event));
        if (begin.current !== null) setDrag([begin.current, x]);
      }}
      onPointerUp={(event) => end(event, true)}
      onPointerCancel={(event) => end(event, false)}
      onPointerLeave={() => onHover(null)}
    >
      {hover !== null && drag === null && (
        <div class="hover-line" style={{ left: `${pixelOf(plot, hover.moment)}px` }}>
          {caption !== "" && (
            <span class={pixelOf(plot, hover.moment) > plot.width * 0.7 ? "caption before" : "caption"}>{caption}</span>
          )}
        </div>
      )}
      {drag !== null && (
        <div class="brush-range" style={{ left: `${left}px`, width: `${right - left}px` }}>
          <span>{duration((momentAt(plot, right) - momentAt(plot, left)) / 1000)}</span>
        </div>
      )}
    </div>
  );
}
