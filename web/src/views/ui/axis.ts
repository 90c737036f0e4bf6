/**
 * The labels of a time axis on a canvas, and the zone of its clock. In: where the axis lies. Nothing is drawn beyond
 * it.
 */
import { timeTicks } from "../../logic/time/ticks.ts";
import { tickLabels, type Window, zoneOf } from "../../logic/time/time.ts";

interface Axis {
  range: Window;
  /** Most labels. */
  most: number;
  /** Pixels of the screen: where the axis begins and ends, and the upper edge of its labels. */
  left: number;
  right: number;
  top: number;
  /** Where the zone stands, which may be before the axis. */
  zoneLeft: number;
  /** Between zone and label, and what a label may stand out at the end. */
  air: number;
}

/** CSS pixels of text on a canvas: as `--text-s`. */
const TEXT = 11;

export function canvasFont(ratio: number, weight: "normal" | "bold" = "normal"): string {
  return `${weight} ${TEXT * ratio}px system-ui, sans-serif`;
}

/** With the context's font and colour; `mark` is told where each label belongs. */
export function paintTimeAxis(
  context: CanvasRenderingContext2D,
  { range, most, left, right, top, zoneLeft, air }: Axis,
  mark: (x: number) => void = () => {},
): void {
  const { ticks, stepMs } = timeTicks(range.from, range.until, most);
  context.textBaseline = "top";
  context.textAlign = "left";
  const zone = zoneOf(range.from);
  context.fillText(zone, zoneLeft, top);
  const free = zoneLeft + context.measureText(zone).width + air;
  context.textAlign = "center";
  tickLabels(ticks, stepMs).forEach((label, i) => {
    const x = left + (((ticks[i] as number) - range.from) / (range.until - range.from)) * (right - left);
    const half = context.measureText(label).width / 2;
    mark(x);
    // Beside its place a label would be wrong: what has no room is left out.
    if (x - half >= free && x + half <= right + air) context.fillText(label, x, top);
  });
  context.textAlign = "left";
}
