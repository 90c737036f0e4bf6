/**
 * Samples in order as a flame chart, driven by its properties alone. In: the chart, what of it is in sight, what is
 * looked for. Out: the wish to see another range and the selected frame. The flamegraph's painter draws it, whose cost
 * follows the pixels; pointer and keyboard can do the same.
 */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { Theme } from "../../logic/colour.ts";
import { Runs } from "../../logic/flame/cells.ts";
import type { Search } from "../../logic/flame/search.ts";
import { type Chart, deepestWithin, type Range, showing } from "../../logic/flame/timeline.ts";
import type { Window } from "../../logic/time/time.ts";
import { ROOT } from "../../logic/tree/tree.ts";
import { Colours, paint, ROW } from "../flame/paint.ts";
import { useCanvas } from "../ui/hooks.ts";
import { BoxTip, boxText } from "./BoxTip.tsx";
import { commandOf } from "./keys.ts";
import { TimeAxis } from "./TimeAxis.tsx";
import { usePointer } from "./usePointer.ts";

interface Props {
  chart: Chart;
  /** Unix milliseconds at which the chart begins. */
  from: number;
  range: Range;
  search: Search | null;
  /** Samples that have what is looked for. */
  found: readonly number[];
  selected: number | null;
  theme: Theme;
  colourBy: "kind" | "module";
  onRange: (range: Range) => void;
  onSelect: (box: number | null) => void;
  /** What stands on the time axis, which shows this window (Unix milliseconds). */
  moments?: (window: Window) => ComponentChildren;
}

export function TimelineCanvas(props: Props) {
  const { chart, from, range, search, found, selected, theme, colourBy, onRange, onSelect, moments } = props;
  const { tree, extentNs } = chart;
  const colours = useRef<Colours | null>(null);
  const runs = useRef(new Runs());
  const span = range.until - range.from;
  const { box, canvas, size, style, drawSoon } = useCanvas((context, surface) => {
    if (colours.current?.fits(tree, theme, colourBy) !== true) colours.current = new Colours(tree, theme, colourBy);
    const scene = {
      tree,
      view: range,
      focus: ROOT,
      search,
      hovered,
      selected,
      pointed: -1,
      theme,
      flame: false,
      ...surface,
      scrollTop: box.current?.scrollTop ?? 0,
      firstRow: 0,
      rows,
      runs: runs.current,
    };
    paint(context, scene, colours.current);
  });
  const rows = Math.max(deepestWithin(chart, range) + 1, Math.floor(size.height / ROW));
  const { hover, onCanvas } = usePointer({ chart, from, range, box, canvas, size, onRange, onSelect });
  const hovered = hover?.box ?? null;

  const reveal = (wanted: number) => {
    onSelect(wanted);
    const start = tree.start[wanted] as number;
    const end = start + (tree.weight[wanted] as number);
    // A long frame is in sight as soon as a part of it is.
    if (end <= range.from || start >= range.until) onRange(showing(range, (start + end) / 2, extentNs));
    const element = box.current;
    if (element === null) return;
    const top = (tree.depth[wanted] as number) * ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW > element.scrollTop + size.height) element.scrollTop = top + ROW - size.height;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const command = commandOf(event, { chart, range, selected, search, found });
    if (command === null) return;
    if (command.does === "show") onRange(command.range);
    else if (command.does === "select") reveal(command.box);
    else if (command.does === "reset") {
      onSelect(null);
      onRange({ from: 0, until: extentNs });
    }
    event.preventDefault();
  };

  const said = selected === null ? null : boxText(chart, from, selected, span);
  return (
    <>
      <div class="timeline-moments">
        <TimeAxis from={from} range={range} width={size.width} />
        {moments?.({ from: from + range.from / 1e6, until: from + range.until / 1e6 })}
      </div>
      <div class="timeline-box" data-zooms="the time" ref={box} onScroll={drawSoon}>
        <div class="flame-extent" style={{ height: `${rows * ROW}px` }}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: an application has its own keys. */}
          <canvas
            ref={canvas}
            style={style}
            role="application"
            aria-roledescription="flame chart"
            aria-label={
              "Samples in the order of time. Left and right go through frames of a depth, " +
              "up and down to caller and callee, plus and minus zoom, Shift with arrows moves, Enter fits a frame, " +
              "n finds the next match, Escape shows all. The list of samples holds the same as text."
            }
            tabIndex={0}
            data-testid="timeline"
            onKeyDown={onKeyDown}
            {...onCanvas}
          />
        </div>
      </div>
      {hovered !== null && hover !== null && (
        <BoxTip text={boxText(chart, from, hovered, span)} x={hover.x} y={hover.y} />
      )}
      <div class="flame-status" role="status" aria-live="polite" data-testid="selected-sample">
        {said === null ? (
          <span class="dim">
            Ctrl and the wheel zoom, dragging moves, a double click fits a frame; keys: arrows, + and −, Enter, n, Esc.
          </span>
        ) : (
          `${said.name}: ${said.where}; ${said.when}`
        )}
      </div>
    </>
  );
}
