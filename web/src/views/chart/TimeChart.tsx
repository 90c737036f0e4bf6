/** Cores over time. The canvas draws axes and layers; the layer above it (`children`) takes the pointer. */
import type { ComponentChildren } from "preact";
import type { Theme } from "../../logic/colour.ts";
import type { Draw, Stack } from "../../logic/series/stack.ts";
import type { Window } from "../../logic/time/time.ts";
import { zoneNow } from "../../logic/time/zone.ts";
import { MarkerLane } from "../lazyViews.tsx";
import { styleOf, useCanvas } from "../ui/hooks.ts";
import { isZoom } from "../ui/wheel.ts";
import { paintChart, plotOf } from "./paint.ts";
import { momentAt, type Plot } from "./place.ts";

interface Props {
  stack: Stack;
  beside: Stack | null;
  top: number;
  colours: string[];
  range: Window;
  theme: Theme;
  showCapacity: boolean;
  draw: Draw;
  /** What levels are multiplied by where the axis tells them. */
  factor: number;
  label: string;
  /** The wheel with Ctrl or ⌘ at a moment; positive is towards the person. */
  onWheel: (moment: number, delta: number) => void;
  children: (plot: Plot) => ComponentChildren;
}

export function TimeChart(props: Props) {
  const { stack, beside, top, colours, range, theme, showCapacity, draw, factor, label, onWheel, children } = props;
  // `theme` changes the colours that the painting reads from the page's style, the zone what the axis says.
  const of = [stack, beside, top, colours, range.from, range.until, theme, showCapacity, draw, factor, zoneNow()];
  const { box, canvas, size, style } = useCanvas((context, surface) => {
    const plot = plotOf(surface, range);
    const colour = styleOf(context.canvas);
    if (plot !== null)
      paintChart(context, { stack, beside, top, colours, draw, factor, showCapacity, colour }, plot, surface);
  }, of);
  const plot = plotOf(size, range);
  return (
    <div class="timechart" role="group" aria-label={label}>
      <div class="timechart-canvas" ref={box} aria-hidden="true">
        <canvas ref={canvas} style={style} data-testid="timechart" />
      </div>
      {plot !== null && (
        <div
          class="timechart-plot"
          data-zooms="the time"
          style={{ left: `${plot.left}px`, top: `${plot.top}px`, width: `${plot.width}px`, height: `${plot.height}px` }}
          onWheel={(event) => {
            if (!isZoom(event) || event.deltaY === 0) return;
            event.preventDefault();
            onWheel(momentAt(plot, event.clientX - event.currentTarget.getBoundingClientRect().left), event.deltaY);
          }}
        >
          {children(plot)}
          <MarkerLane range={range} />
        </div>
      )}
    </div>
  );
}
