/**
 * Samples in order as a flame chart. In: the chart, what of it is in sight, what is looked for. Out: the wish to see another range and the
 * selected frame. Drawn by the flamegraph's painter, whose cost follows the pixels; pointer and keyboard can do the same.
 */
import { useRef, useState } from "preact/hooks";
import type { Theme } from "../../logic/colour.ts";
import { Runs } from "../../logic/flame/cells.ts";
import { neighbour, nodeAt, type Step } from "../../logic/flame/layout.ts";
import type { Search } from "../../logic/flame/search.ts";
import {
  type Chart,
  deepestWithin,
  momentText,
  panned,
  type Range,
  sampleFrom,
  showing,
  zoomed,
} from "../../logic/flame/timeline.ts";
import { duration, plural } from "../../logic/text/format.ts";
import { timeTicks } from "../../logic/time/ticks.ts";
import { tickLabels, zoneOf } from "../../logic/time/time.ts";
import { frameName, kindName, moduleName, ROOT } from "../../logic/tree/tree.ts";
import { Colours, paint, ROW } from "../flame/paint.ts";
import { useBeside, useCanvas } from "../ui/hooks.ts";

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
  onRange: (range: Range) => void;
  onSelect: (box: number | null) => void;
}

const STEPS: Record<string, Step> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
  Home: "first",
  End: "last",
};
/** A shorter drag is a click with a shaky hand. */
const LEAST_PIXELS = 4;

export function TimelineCanvas(props: Props) {
  const { chart, from, range, search, found, selected, theme, onRange, onSelect } = props;
  const { tree, extentNs } = chart;
  const colours = useRef<Colours | null>(null);
  const runs = useRef(new Runs());
  const [hover, setHover] = useState<{ box: number; x: number; y: number } | null>(null);
  const drag = useRef<{ x: number; y: number; range: Range; top: number; moved: boolean } | null>(null);
  const span = range.until - range.from;
  const hovered = hover !== null && hover.box < tree.size ? hover.box : null;
  const { box, canvas, size, style, drawSoon } = useCanvas((context, surface) => {
    if (colours.current?.fits(tree, theme, "kind") !== true) colours.current = new Colours(tree, theme, "kind");
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

  const onWheel = (event: WheelEvent) => {
    const bounds = canvas.current?.getBoundingClientRect();
    if (bounds === undefined) return;
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      onRange(panned(range, (sideways / bounds.width) * span, extentNs));
    } else {
      onRange(zoomed(range, Math.exp(event.deltaY / 400), (event.clientX - bounds.left) / bounds.width, extentNs));
    }
  };
  const boxAt = (event: MouseEvent): number | null => {
    const bounds = canvas.current?.getBoundingClientRect();
    if (bounds === undefined || box.current === null) return null;
    const depth = Math.floor((event.clientY - bounds.top + box.current.scrollTop) / ROW);
    return nodeAt(tree, depth, range.from + ((event.clientX - bounds.left) / bounds.width) * span);
  };
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
  const toHit = (direction: 1 | -1) => {
    const here = selected === null ? range.from : (tree.start[selected] as number);
    const times = chart.samples.offset_ns;
    const next =
      direction === 1
        ? found.find((sample) => (times[sample] as number) > here)
        : found.findLast((sample) => (times[sample] as number) < here);
    const sample = next ?? (direction === 1 ? found[0] : found[found.length - 1]);
    if (sample === undefined || search === null) return;
    let at = chart.boxOf[sample] as number;
    while (at > ROOT && !search.hits.has(at)) at = tree.parent[at] as number;
    reveal(at);
  };
  const fitBox = (wanted: number) => {
    const start = tree.start[wanted] as number;
    onRange(zoomed({ from: start, until: start + (tree.weight[wanted] as number) }, 1, 0.5, extentNs));
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    const first = chart.boxOf[Math.min(sampleFrom(chart.samples, range.from), chart.boxOf.length - 1)];
    if (event.shiftKey && key === "ArrowLeft") onRange(panned(range, -span / 4, extentNs));
    else if (event.shiftKey && key === "ArrowRight") onRange(panned(range, span / 4, extentNs));
    else if (STEPS[key] !== undefined && first !== undefined)
      reveal(selected === null ? first : neighbour(tree, selected, STEPS[key] as Step, ROOT));
    else if (key === "+" || key === "=") onRange(zoomed(range, 0.5, 0.5, extentNs));
    else if (key === "-") onRange(zoomed(range, 2, 0.5, extentNs));
    else if (key === "Enter" && selected !== null) fitBox(selected);
    else if (key === "n") toHit(1);
    else if (key === "N") toHit(-1);
    else if (key === "Escape" || key === "0") {
      onSelect(null);
      onRange({ from: 0, until: extentNs });
    } else return;
    event.preventDefault();
  };

  const said = selected === null ? null : boxText(chart, from, selected, span);
  return (
    <>
      <TimeAxis from={from} range={range} width={size.width} />
      <div class="timeline-box" ref={box} onScroll={drawSoon}>
        <div class="flame-extent" style={{ height: `${rows * ROW}px` }}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: the canvas handles its own keys, which "application" says. */}
          <canvas
            ref={canvas}
            style={style}
            role="application"
            aria-roledescription="flame chart"
            aria-label="Samples in the order of time. Left and right go through frames of a depth, up and down to caller and callee, plus and minus zoom, Shift with arrows moves, Enter fits a frame, n finds the next match, Escape shows all. The list of samples holds the same as text."
            tabIndex={0}
            data-testid="timeline"
            onKeyDown={onKeyDown}
            onWheel={onWheel}
            onPointerDown={(event) => {
              if (event.button !== 0) return;
              event.currentTarget.setPointerCapture(event.pointerId);
              drag.current = {
                x: event.clientX,
                y: event.clientY,
                range,
                top: box.current?.scrollTop ?? 0,
                moved: false,
              };
            }}
            onPointerMove={(event) => {
              const at = drag.current;
              if (at === null) {
                const under = boxAt(event);
                setHover(under === null || under === ROOT ? null : { box: under, x: event.clientX, y: event.clientY });
                return;
              }
              const by = event.clientX - at.x;
              if (!at.moved && Math.max(Math.abs(by), Math.abs(event.clientY - at.y)) < LEAST_PIXELS) return;
              at.moved = true;
              setHover(null);
              if (box.current !== null) box.current.scrollTop = at.top - (event.clientY - at.y);
              onRange(panned(at.range, (-by / Math.max(size.width, 1)) * (at.range.until - at.range.from), extentNs));
            }}
            onPointerUp={(event) => {
              if (drag.current?.moved === false) onSelect(boxAt(event));
              drag.current = null;
            }}
            onPointerCancel={() => {
              drag.current = null;
            }}
            onPointerLeave={() => setHover(null)}
            onDblClick={(event) => {
              const under = boxAt(event);
              if (under !== null) fitBox(under);
            }}
          />
        </div>
      </div>
      {hovered !== null && hover !== null && (
        <BoxTip text={boxText(chart, from, hovered, span)} x={hover.x} y={hover.y} />
      )}
      <div class="flame-status" role="status" aria-live="polite" data-testid="selected-sample">
        {said === null ? (
          <span class="dim">
            Wheel zooms, dragging moves, a double click fits a frame; keys: arrows, + and −, Enter, n, Esc.
          </span>
        ) : (
          `${said.name}: ${said.where}; ${said.when}`
        )}
      </div>
    </>
  );
}

interface BoxText {
  name: string;
  where: string;
  when: string;
}

function boxText({ tree, samples, boxOf }: Chart, from: number, box: number, spanNs: number): BoxText {
  const start = tree.start[box] as number;
  const module = moduleName(tree, box);
  const sample = Math.min(sampleFrom(samples, start), boxOf.length - 1);
  const who = `${samples.thread[sample] ?? ""} (${samples.tid[sample] ?? "?"}) on CPU ${samples.cpu[sample] ?? "?"}`;
  return {
    name: frameName(tree, box),
    where: `${kindName(tree, box)}${module === "" ? "" : ` · ${module}`}, ${who}`,
    when: `${plural(tree.total[box] as number, "sample")} over ${duration((tree.weight[box] as number) / 1e9)} from ${momentText(from, start, Math.min(spanNs, 1e9))}`,
  };
}

function BoxTip({ text, x, y }: { text: BoxText; x: number; y: number }) {
  const element = useBeside(x, y);
  return (
    <div class="tooltip" ref={element} aria-hidden="true" data-testid="tooltip">
      <div class="tooltip-name">{text.name}</div>
      <div class="tooltip-where">{text.where}</div>
      <div>{text.when}</div>
    </div>
  );
}

/** Labels above the chart; below a second they are milliseconds from the first one. */
function TimeAxis({ from, range, width }: { from: number; range: Range; width: number }) {
  const [begin, end] = [from + range.from / 1e6, from + range.until / 1e6];
  const { ticks, stepMs } = timeTicks(begin, end, Math.max(2, Math.floor(width / 110)));
  const labels =
    stepMs >= 1000 ? tickLabels(ticks, stepMs) : ticks.map((tick) => momentText(from, (tick - from) * 1e6, 1e9));
  return (
    <div class="timeline-axis" style={{ width: `${width}px` }} aria-hidden="true">
      <b>{zoneOf(begin)}</b>
      {ticks.map((tick, i) => (
        <span key={tick} style={{ left: `${((tick - begin) / (end - begin)) * 100}%` }}>
          {labels[i]}
        </span>
      ))}
    </div>
  );
}
