/**
 * The two windows of a comparison on one chart. Each can be dragged as a whole or by an edge, with the pointer or with
 * the arrow keys (Shift: ten times as far). What is dragged is shown at once and reported when it is let go.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { dragged, type Edge, overlapping, uncovered } from "../../logic/compare/dragging.ts";
import { sideText } from "../../logic/compare/sideNames.ts";
import { duration } from "../../logic/text/format.ts";
import { rangeText } from "../../logic/time/time.ts";
import { lengthOf, type Pair } from "../../logic/time/windows.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { momentAt, type Plot, pixelOf } from "./place.ts";

interface Props {
  plot: Plot;
  pair: Pair;
  now: number;
  /** Both windows keep the same length. */
  locked: boolean;
  onHover: (moment: number | null) => void;
  /** Changes of the same gesture (a key held down) come with the same name. */
  onChange: (pair: Pair, gesture: string) => void;
}

type Side = keyof Pair;
type Grip = Edge | "body";

const LETTER: Record<Side, string> = { base: "A", comparison: "B" };
const KEY_PART = 1 / 200;

export function WindowPair({ plot, pair, now, locked, onHover, onChange }: Props) {
  const [draft, setDraft] = useState<Pair | null>(null);
  /** What is held: its grip, and the moment that is below the pointer, whatever range an answer brings meanwhile. */
  const gesture = useRef<{ side: Side; grip: Grip; moment: number; start: Pair } | null>(null);
  const layer = useRef<HTMLDivElement>(null);
  const shown = draft ?? pair;
  const bounds = plot.range;

  // A new pair replaces what was dragged, and not what a hand holds: an answer that moves the windows takes nothing out
  // of it.
  useEffect(() => {
    if (gesture.current === null) setDraft(null);
  }, [pair.base.from, pair.base.until, pair.comparison.from, pair.comparison.until]);

  const place = (event: PointerEvent) => {
    const box = layer.current?.getBoundingClientRect();
    return event.clientX - (box?.left ?? 0);
  };
  /** Also beside the plot. */
  const momentOf = (x: number) => bounds.from + (x * lengthOf(bounds)) / plot.width;
  const begin = (side: Side, grip: Grip) => (event: PointerEvent) => {
    if (event.button !== 0) return;
    event.stopPropagation();
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    gesture.current = { side, grip, moment: momentOf(place(event)), start: shown };
  };
  const during = (event: PointerEvent) => {
    const g = gesture.current;
    const x = place(event);
    onHover(momentAt(plot, x));
    if (g === null) return;
    setDraft(dragged(g.start, g.side, g.grip, momentOf(x) - g.moment, bounds, locked));
  };
  const end = () => {
    const g = gesture.current;
    gesture.current = null;
    if (g !== null && draft !== null) onChange(draft, "");
  };
  const cancel = () => {
    gesture.current = null;
    setDraft(null);
  };
  const onKey = (side: Side, grip: Grip) => (event: KeyboardEvent) => {
    const direction = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (direction === 0) return;
    event.preventDefault();
    const by = direction * lengthOf(bounds) * KEY_PART * (event.shiftKey ? 10 : 1);
    onChange(dragged(shown, side, grip, by, bounds, locked), `window ${side} ${grip}`);
  };
  const covered = overlapping(shown);
  const handlers = (side: Side, grip: Grip) => ({
    onPointerDown: begin(side, grip),
    onKeyDown: onKey(side, grip),
  });

  return (
    <div
      class="pair-layer"
      ref={layer}
      onPointerMove={during}
      onPointerUp={end}
      onPointerCancel={cancel}
      onPointerLeave={() => onHover(null)}
    >
      {uncovered(bounds, [shown.base, shown.comparison]).map(({ from, until }) => (
        <div
          key={from}
          class="pair-outside"
          data-testid="outside"
          style={{ left: `${pixelOf(plot, from)}px`, width: `${pixelOf(plot, until) - pixelOf(plot, from)}px` }}
        />
      ))}
      {(["base", "comparison"] as const).map((side, at) => {
        const name = sideText(sideNames.value, at as 0 | 1);
        const window = shown[side];
        const left = pixelOf(plot, window.from);
        const right = pixelOf(plot, window.until);
        const range = rangeText(window, now);
        return (
          <div
            key={side}
            class={`pair-window ${side}${covered ? " halved" : ""}`}
            data-testid={`window-${side}`}
            style={{ left: `${left}px`, width: `${Math.max(2, right - left)}px` }}
          >
            <div
              class="pair-body"
              role="slider"
              tabIndex={0}
              aria-label={`Window ${name}`}
              aria-valuemin={bounds.from}
              aria-valuemax={bounds.until}
              aria-valuenow={window.from}
              aria-valuetext={range}
              title={`${name}: ${range}. Drag to move.`}
              {...handlers(side, "body")}
            >
              <span class="pair-letter">{LETTER[side]}</span>
              <span class="pair-length">{duration(lengthOf(window) / 1000)}</span>
            </div>
            {(["from", "until"] as const).map((edge) => (
              <div
                key={edge}
                class={`pair-edge ${edge}`}
                role="slider"
                tabIndex={0}
                aria-label={`${edge === "from" ? "Start" : "End"} of window ${name}`}
                aria-valuemin={bounds.from}
                aria-valuemax={bounds.until}
                aria-valuenow={window[edge]}
                aria-valuetext={rangeText(window, now)}
                data-testid={`edge-${side}-${edge}`}
                {...handlers(side, edge)}
              />
            ))}
          </div>
        );
      })}
    </div>
  );
}
