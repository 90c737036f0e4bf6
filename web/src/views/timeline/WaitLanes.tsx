/**
 * Waits of the threads of a timeline as bars, a row for each thread, over the same time as the samples below. By keys:
 * arrows go through waits and threads, Enter fits one, Escape leaves it.
 */
import { useEffect, useState } from "preact/hooks";
import type { Theme } from "../../logic/colour.ts";
import { clamped, type Range, showing, zoomed } from "../../logic/flame/timeline.ts";
import { count, duration } from "../../logic/text/format.ts";
import { plainLine } from "../../logic/text/plain.ts";
import {
  aroundWait,
  stepFrom,
  type Wait,
  type WaitLane,
  type WaitPlace,
  waitAt,
  waitSentence,
  waitWords,
} from "../../logic/waits/lanes.ts";
import { inOrder, partOf } from "../../logic/waits/parts.ts";
import { canvasFont } from "../ui/axis.ts";
import { useBeside } from "../ui/beside.ts";
import { type Surface, styleOf, useCanvas } from "../ui/hooks.ts";

interface Props {
  lanes: readonly WaitLane[];
  /** Unix milliseconds at which the timeline begins. */
  from: number;
  range: Range;
  extentNs: number;
  chosen: WaitPlace | null;
  theme: Theme;
  onChoose: (place: WaitPlace | null) => void;
  onRange: (range: Range) => void;
}

/** Threads that are drawn; the list of samples has all waits. */
export const MOST_LANES = 100;
const LANE = 20;
const MOST_IN_SIGHT = 7;
/** Pixels within which a short wait is meant. */
const REACH = 3;
/** A bar of fewer pixels has no text. */
const TEXT_FROM = 60;
/** Letters of what stands on a bar: more have no room. */
const MOST_LETTERS = 200;

export function WaitLanes({ lanes: all, from, range, extentNs, chosen, theme, onChoose, onRange }: Props) {
  const lanes = all.slice(0, MOST_LANES);
  const span = range.until - range.from;
  const [under, setHover] = useState<(WaitPlace & { of: Props["lanes"]; x: number; y: number }) | null>(null);
  // A wait of the answer before would be another wait in this one.
  const hover = under?.of === all ? under : null;
  const { box, canvas, size, style, drawSoon } = useCanvas((context, surface) =>
    paint(context, surface, { lanes, range, chosen, theme, top: box.current?.scrollTop ?? 0 }),
  );
  useEffect(() => {
    const element = box.current;
    if (chosen === null || element === null) return;
    const top = chosen.lane * LANE;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + LANE > element.scrollTop + size.height) element.scrollTop = top + LANE - size.height;
  }, [chosen?.lane, size.height]);
  const waitOf = (place: WaitPlace | null): Wait | undefined =>
    place === null ? undefined : lanes[place.lane]?.waits[place.at];
  const choose = (place: WaitPlace) => {
    onChoose(place);
    const wait = waitOf(place);
    if (wait !== undefined && (wait.end <= range.from || wait.start >= range.until))
      onRange(showing(range, wait.end, extentNs));
  };
  const placeAt = (event: MouseEvent): WaitPlace | null => {
    const bounds = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const lane = Math.floor((event.clientY - bounds.top + (box.current?.scrollTop ?? 0)) / LANE);
    const of = lanes[lane];
    if (of === undefined || size.width === 0) return null;
    const perPixel = span / size.width;
    const at = waitAt(of, range.from + (event.clientX - bounds.left) * perPixel, REACH * perPixel);
    return at === null ? null : { lane, at };
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const wait = waitOf(chosen);
    const next = stepFrom(lanes, chosen, event.key);
    if (next !== null) choose(next);
    else if (event.key === "Enter" && wait !== undefined) onRange(clamped(aroundWait(wait), extentNs));
    else if (event.key === "Escape") onChoose(null);
    else if (event.key === "+" || event.key === "=") onRange(zoomed(range, 0.5, 0.5, extentNs));
    else if (event.key === "-") onRange(zoomed(range, 2, 0.5, extentNs));
    else return;
    event.preventDefault();
  };
  const [picked, pointed] = [waitOf(chosen), waitOf(hover)];
  const parts = inOrder([...new Set(lanes.flatMap(({ waits }) => waits.map(({ part }) => part)))]);
  return (
    <section class="wait-lanes" aria-label="Waits">
      <div class="wait-key">
        <b>Waits</b>
        {parts.map((part) => (
          <span key={part} title={partOf(part).hint}>
            <i class="swatch" style={{ background: partOf(part).colour[theme] }} /> {partOf(part).title}
          </span>
        ))}
        {all.length > MOST_LANES && (
          <span class="dim">
            the {MOST_LANES} of {count(all.length)} threads that waited longest
          </span>
        )}
      </div>
      <div
        class="wait-box"
        ref={box}
        onScroll={drawSoon}
        style={{ height: `${Math.min(lanes.length, MOST_IN_SIGHT) * LANE}px` }}
      >
        <div style={{ height: `${lanes.length * LANE}px` }}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: an application has its own keys. */}
          <canvas
            ref={canvas}
            style={style}
            role="application"
            aria-roledescription="waits by thread"
            aria-label={
              `Waits of ${count(lanes.length)} threads. Left and right go through the waits of a thread, up and down ` +
              "to another thread, Enter fits a wait, plus and minus zoom, Escape leaves it. The list of samples holds " +
              "the same as text."
            }
            tabIndex={0}
            data-testid="waits"
            onKeyDown={onKeyDown}
            onPointerMove={(event) => {
              const place = placeAt(event);
              setHover(place === null ? null : { ...place, of: all, x: event.clientX, y: event.clientY });
            }}
            onPointerLeave={() => setHover(null)}
            onClick={(event) => onChoose(placeAt(event))}
            onDblClick={(event) => {
              const wait = waitOf(placeAt(event));
              if (wait !== undefined) onRange(clamped(aroundWait(wait), extentNs));
            }}
          />
        </div>
      </div>
      {pointed !== undefined && hover !== null && (
        <WaitTip text={waitSentence(pointed, from, span)} x={hover.x} y={hover.y} />
      )}
      <div class="flame-status" role="status" aria-live="polite" data-testid="selected-wait">
        {picked === undefined ? (
          <span class="dim">
            {lanes.length === 1 ? (lanes[0] as WaitLane).thread : `${count(lanes.length)} threads`}:{" "}
            {duration(lanes.reduce((sum, { queued }) => sum + queued, 0) / 1e9)} for a CPU,{" "}
            {duration(lanes.reduce((sum, { waited }) => sum + waited, 0) / 1e9)} for something else
          </span>
        ) : (
          waitSentence(picked, from, span)
        )}
      </div>
    </section>
  );
}

function WaitTip({ text, x, y }: { text: string; x: number; y: number }) {
  const element = useBeside(x, y);
  return (
    <div class="tooltip" ref={element} aria-hidden="true" data-testid="wait-tip">
      {text}
    </div>
  );
}

interface Scene {
  lanes: readonly WaitLane[];
  range: Range;
  chosen: WaitPlace | null;
  theme: Theme;
  top: number;
}

/** At most one bar a pixel and row: waits that end on the pixel of the one before are part of it. */
function paint(context: CanvasRenderingContext2D, surface: Surface, { lanes, range, chosen, theme, top }: Scene): void {
  const { width, height, ratio } = surface;
  const colour = styleOf(context.canvas);
  const scale = (width * ratio) / (range.until - range.from);
  const x = (ns: number) => Math.round(Math.min(Math.max((ns - range.from) * scale, 0), width * ratio));
  context.fillStyle = colour("--panel");
  context.fillRect(0, 0, width * ratio, height * ratio);
  context.font = canvasFont(ratio);
  context.textBaseline = "middle";
  context.textAlign = "left";
  lanes.forEach(({ waits, thread, tid }, lane) => {
    const y = Math.round((lane * LANE - top) * ratio);
    if (y + LANE * ratio < 0 || y > height * ratio) return;
    const [bar, middle] = [Math.round((LANE - 4) * ratio), y + (LANE * ratio) / 2];
    let painted = -1;
    // Words stand on all bars.
    const told: (() => void)[] = [];
    waits.forEach((wait, at) => {
      if (wait.end < range.from || wait.start > range.until) return;
      const isChosen = chosen !== null && chosen.lane === lane && chosen.at === at;
      const [left, right] = [x(wait.start), Math.max(x(wait.end), x(wait.start) + Math.ceil(ratio))];
      if (right <= painted && !isChosen) return;
      painted = right;
      context.fillStyle = partOf(wait.part).colour[theme];
      context.fillRect(left, y + 2 * ratio, right - left, bar);
      if (isChosen) {
        context.strokeStyle = colour("--text");
        context.lineWidth = 2 * ratio;
        context.strokeRect(left + ratio, y + 3 * ratio, Math.max(right - left - 2 * ratio, ratio), bar - 2 * ratio);
      }
      if (right - left >= TEXT_FROM * ratio)
        told.push(() => label(context, colour, waitWords(wait), left, right, middle, ratio));
    });
    for (const tell of told) tell();
    if (lanes.length > 1) label(context, colour, `${thread} (${tid})`, 0, width * ratio, middle, ratio);
  });
}

/** On a ground of its own, which is read on every colour of a bar. */
function label(
  context: CanvasRenderingContext2D,
  colour: (name: string) => string,
  written: string,
  left: number,
  right: number,
  middle: number,
  ratio: number,
): void {
  // Names are what others wrote: what is drawn passes no hook for texts.
  const text = plainLine(written, MOST_LETTERS);
  const room = right - left - 8 * ratio;
  const width = context.measureText(text).width;
  if (width > room && left > 0) return;
  const high = 14 * ratio;
  context.fillStyle = colour("--panel");
  context.globalAlpha = 0.85;
  // A bar's words end where the bar does: its beginning may be under the thread's name.
  const begin = left > 0 ? right - width - 6 * ratio : left;
  context.fillRect(begin, middle - high / 2, width + 6 * ratio, high);
  context.globalAlpha = 1;
  context.fillStyle = colour("--text");
  context.fillText(text, begin + 3 * ratio, middle);
}
