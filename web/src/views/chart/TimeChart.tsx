/** Cores over time. The canvas draws axes and layers; the layer above it (`children`) takes the pointer. */
import type { ComponentChildren } from "preact";
import type { Theme } from "../../logic/colour.ts";
import type { Draw, Stack } from "../../logic/series/stack.ts";
import type { Window } from "../../logic/time/time.ts";
import { styleOf, useCanvas } from "../ui/hooks.ts";
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
  label: string;
  /** The wheel at a moment; positive is towards the person. */
  onWheel: (moment: number, delta: number) => void;
  children: (plot: Plot) => ComponentChildren;
}

export function TimeChart(props: Props) {
  const { stack, beside, top, colours, range, theme, showCapacity, draw, label, onWheel, children } = props;
  // `theme` changes the colours that the painting reads from the page's style.
  const of = [stack, beside, top, colours, range.from, range.until, theme, showCapacity, draw];
  const { box, canvas, size, style } = useCanvas((context, surface) => {
    const plot = plotOf(surface, range);
    const colour = styleOf(context.canvas);
    if (plot !== null) paintChart(context, { stack, beside, top, colours, draw, showCapacity, colour }, plot, surface);
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
          style={{ left: `${plot.left}px`, top: `${plot.top}px`, width: `${plot.width}px`, height: `${plot.height}px` }}
          onWheel={(event) => {
            // With a modifier it is the browser's zoom.
            if (event.deltaY === 0 || event.ctrlKey || event.metaKey) return;
            event.preventDefault();
            onWheel(momentAt(plot, event.clientX - event.currentTarget.getBoundingClientRect().left), event.deltaY);
          }}
        >
          {children(plot)}
        </div>
      )}
    </div>
  );
}
