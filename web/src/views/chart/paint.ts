/**
 * Draws cores over time: layers on top of each other or as lines, the capacity, times that nobody watched, axes. In: a
 * stack and where it goes on the canvas. The cost follows steps times layers, of which the server sends a few hundred
 * and twenty.
 */
import { type Draw, heightsOf, type Stack } from "../../logic/series/stack.ts";
import { axisNumber } from "../../logic/text/format.ts";
import { levelTicks } from "../../logic/time/ticks.ts";
import type { Window } from "../../logic/time/time.ts";
import { canvasFont, paintTimeAxis } from "../ui/axis.ts";
import type { Size, Surface } from "../ui/hooks.ts";
import { stripes } from "../ui/stripes.ts";
import { type Plot, pixelOf } from "./place.ts";

export interface ChartScene {
  stack: Stack;
  /** One a layer. */
  colours: readonly string[];
  draw: Draw;
  /** What levels are multiplied by where the axis tells them. */
  factor: number;
  showCapacity: boolean;
  /** Its sum is a line over everything else. */
  beside: Stack | null;
  /** The level of the plot's upper edge. */
  top: number;
  /** Reads a colour of the page's style. */
  colour: (name: string) => string;
}

/** CSS pixels around the plot: room for the axes. */
const MARGIN = { left: 44, right: 26, top: 8, bottom: 24 };
/** CSS pixels that a label of an axis needs. */
const ROOM = { time: 70, level: 28 };
const LINE = 1.5;
/** Height of the mark of time that only some nodes covered. */
const PARTLY = 5;

/** Where the plot of a chart lies, CSS pixels; null where there is no room for one. */
export function plotOf({ width, height }: Size, range: Window): Plot | null {
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  return inner.width < 1 || inner.height < 1 ? null : { left: MARGIN.left, top: MARGIN.top, ...inner, range };
}

/** The places of a plot in pixels of the screen. */
interface Scale {
  left: number;
  right: number;
  top: number;
  bottom: number;
  ratio: number;
  x: (moment: number) => number;
  y: (level: number) => number;
}

function scaleOf(plot: Plot, top: number, ratio: number): Scale {
  const at = (pixels: number) => Math.round(pixels * ratio);
  const [left, right] = [at(plot.left), at(plot.left + plot.width)];
  const [above, bottom] = [at(plot.top), at(plot.top + plot.height)];
  return {
    left,
    right,
    top: above,
    bottom,
    ratio,
    x: (moment) => Math.round(Math.min(Math.max(at(plot.left + pixelOf(plot, moment)), left), right)),
    y: (level) => Math.round(bottom - (level / top) * (bottom - above)),
  };
}

export function paintChart(
  context: CanvasRenderingContext2D,
  scene: ChartScene,
  plot: Plot,
  { width, height, ratio }: Surface,
): void {
  const { stack, beside, draw, showCapacity, top, colour } = scene;
  const scale = scaleOf(plot, top, ratio);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colour("--panel");
  context.fillRect(0, 0, Math.ceil(width * ratio), Math.ceil(height * ratio));
  for (const window of stack.uncovered) hatch(context, scene, scale, window, scale.bottom - scale.top);
  for (const window of stack.partly) hatch(context, scene, scale, window, PARTLY * ratio);
  paintLevels(context, scene, scale, plot);
  paintTimes(context, scene, scale, plot);
  context.save();
  context.beginPath();
  context.rect(scale.left, scale.top, scale.right - scale.left, scale.bottom - scale.top);
  context.clip();
  if (draw === "stacked") paintLayers(context, scene, scale);
  else paintLines(context, scene, scale);
  if (showCapacity) {
    context.setLineDash([4 * ratio, 4 * ratio]);
    trace(context, stack, scale, stack.capacity, colour("--dim"), 1);
    context.setLineDash([]);
  }
  if (beside !== null) {
    // On a broader line of the ground it is seen on every layer.
    trace(context, beside, scale, beside.total, colour("--panel"), 4);
    trace(context, beside, scale, beside.total, colour("--side-a"), 2);
  }
  context.restore();
}

/**
 * Each layer from the upper edge of the one below it to its own: no pixel is painted twice. A line of the ground parts
 * layers that have room for it: two names may have one colour.
 */
function paintLayers(
  context: CanvasRenderingContext2D,
  { stack, colours }: ChartScene,
  { x, y, bottom, ratio }: Scale,
): void {
  const line = Math.max(1, Math.round(ratio / 2));
  const below = stack.total.map(() => bottom);
  heightsOf(stack, "stacked").forEach((levels, layer) => {
    context.fillStyle = colours[layer] as string;
    levels.forEach((level, i) => {
      if (level === null) return;
      const [left, right] = [x(stack.edges[i] as number), x(stack.edges[i + 1] as number)];
      const [edge, base] = [Math.min(y(level), bottom), below[i] as number];
      if (edge >= base) return;
      const gap = base < bottom && base - edge >= 4 * line ? line : 0;
      context.fillRect(left, edge, right - left, base - edge - gap);
      below[i] = edge;
    });
  });
}

function paintLines(context: CanvasRenderingContext2D, { stack, colours }: ChartScene, scale: Scale): void {
  heightsOf(stack, "lines").forEach((levels, layer) => {
    trace(context, stack, scale, levels, colours[layer] as string, LINE);
  });
}

/** A stepped line; what is not known is a gap. */
function trace(
  context: CanvasRenderingContext2D,
  { edges }: Stack,
  { x, y, ratio }: Scale,
  levels: readonly (number | null)[],
  ink: string,
  thickness: number,
): void {
  context.strokeStyle = ink;
  context.lineWidth = thickness * ratio;
  context.lineJoin = "round";
  context.beginPath();
  let isOpen = false;
  levels.forEach((level, i) => {
    if (level !== null) {
      const [left, right] = [x(edges[i] as number), x(edges[i + 1] as number)];
      if (isOpen) context.lineTo(left, y(level));
      else context.moveTo(left, y(level));
      context.lineTo(right, y(level));
    }
    isOpen = level !== null;
  });
  context.stroke();
}

function paintLevels(
  context: CanvasRenderingContext2D,
  { colour, top, factor }: ChartScene,
  { left, right, y, ratio }: Scale,
  plot: Plot,
): void {
  context.font = canvasFont(ratio);
  context.textAlign = "right";
  context.textBaseline = "middle";
  const thick = Math.max(1, Math.round(ratio));
  for (const level of levelTicks(top * factor, Math.floor(plot.height / ROOM.level))) {
    const place = y(level / factor);
    context.fillStyle = colour("--grid");
    context.fillRect(left, place, right - left, thick);
    context.fillStyle = colour("--dim");
    context.fillText(axisNumber(level), left - 5 * ratio, place);
  }
}

function paintTimes(
  context: CanvasRenderingContext2D,
  { colour }: ChartScene,
  { left, right, bottom, ratio }: Scale,
  plot: Plot,
) {
  context.fillStyle = colour("--dim");
  paintTimeAxis(context, {
    range: plot.range,
    most: Math.max(2, Math.floor(plot.width / ROOM.time)),
    left,
    right,
    top: bottom + 6 * ratio,
    zoneLeft: 2 * ratio,
    air: 6 * ratio,
  });
}

/** Time that nobody watched: its emptiness says nothing. */
function hatch(
  context: CanvasRenderingContext2D,
  { colour }: ChartScene,
  { x, bottom, ratio }: Scale,
  window: Window,
  height: number,
): void {
  const [left, right] = [x(window.from), x(window.until)];
  if (right <= left) return;
  const top = bottom - height;
  context.fillStyle = colour("--grid");
  context.globalAlpha = 0.5;
  context.fillRect(left, top, right - left, height);
  context.globalAlpha = 1;
  context.strokeStyle = colour("--hatch");
  context.lineWidth = ratio;
  stripes(context, [left, top, right - left, height], 7 * ratio);
}
