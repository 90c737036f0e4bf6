/**
 * Draws a heatmap: cells by class of colour, times that nobody covered, marks and the cursor. The colours of both
 * themes rise evenly in lightness, so that they are told apart without seeing hues. Draws at most one column a pixel.
 */
import type { Theme } from "../../logic/colour.ts";
import { CLASSES, classOf, type Grid, merged, outline } from "../../logic/heatmap/heatmap.ts";
import { axisNumber } from "../../logic/text/format.ts";
import { canvasFont, paintTimeAxis } from "../ui/axis.ts";
import { stripes } from "../ui/stripes.ts";

/** From few to many; on the light ground many are dark, on the dark ground bright. */
const RAMP: Record<Theme, readonly string[]> = {
  light: ["#f9cf85", "#f7b267", "#f08f52", "#e0684f", "#bf4160", "#8c276c", "#4a1260"],
  dark: ["#5a3494", "#7f3690", "#a63f86", "#cb5578", "#e87c5c", "#f9b266", "#fdf1bd"],
};

/** CSS pixels around the plot: room for the axes. */
export const MARGIN = { left: 46, right: 10, top: 8, bottom: 20 };

/** The colour of a class; few classes are spread over the whole ramp. */
export function heatRamp(theme: Theme, index: number, classes: number): string {
  const at = classes <= 1 ? CLASSES >> 1 : Math.round((index * (CLASSES - 1)) / (classes - 1));
  return RAMP[theme][at] as string;
}

export interface HeatScene {
  cells: readonly number[];
  grid: Grid;
  classes: readonly number[];
  gaps: readonly [number, number][];
  theme: Theme;
  /** Runs of cells, first and last; those of a rest are drawn as the whole but not outlined. */
  a: readonly [number, number] | null;
  b: readonly [number, number] | null;
  /** What is being dragged, and for which side. */
  drag: { cells: readonly [number, number]; letter: "A" | "B" } | null;
  cursor: number | null;
  /** CSS pixels. */
  width: number;
  height: number;
  ratio: number;
  /** Reads a colour of the page's style. */
  colour: (name: string) => string;
}

interface Plot {
  left: number;
  top: number;
  width: number;
  height: number;
}

function plotOf({ width, height, ratio }: HeatScene): Plot {
  const { left, right, top, bottom } = MARGIN;
  return {
    left: Math.round(left * ratio),
    top: Math.round(top * ratio),
    width: Math.max(1, Math.round((width - left - right) * ratio)),
    height: Math.max(1, Math.round((height - top - bottom) * ratio)),
  };
}

/** What changes with the answer only: cells, gaps, axes. */
export function paintGround(context: CanvasRenderingContext2D, scene: HeatScene): void {
  const { width, height, ratio, colour } = scene;
  const plot = plotOf(scene);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colour("--panel");
  context.fillRect(0, 0, Math.ceil(width * ratio), Math.ceil(height * ratio));
  context.fillStyle = colour("--sunk");
  context.fillRect(plot.left, plot.top, plot.width, plot.height);
  paintCells(context, scene, plot);
  paintGaps(context, scene, plot);
  paintAxes(context, scene, plot);
}

/** What lies over it and follows the pointer. */
export function paintMarks(context: CanvasRenderingContext2D, scene: HeatScene): void {
  const plot = plotOf(scene);
  if (scene.a !== null) paintMark(context, scene, plot, scene.a, "A");
  if (scene.b !== null) paintMark(context, scene, plot, scene.b, "B");
  if (scene.drag !== null) paintMark(context, scene, plot, scene.drag.cells, scene.drag.letter);
  if (scene.cursor !== null) paintCursor(context, scene, plot, scene.cursor);
}

function paintCells(context: CanvasRenderingContext2D, { cells, grid, classes, theme }: HeatScene, plot: Plot): void {
  const { rows } = grid;
  const drawn = merged(cells, grid.columns, rows, plot.width);
  const edgeX = (column: number) => plot.left + Math.round((column * plot.width) / drawn.columns);
  const edgeY = (row: number) => plot.top + plot.height - Math.round((row * plot.height) / rows);
  const ramp = classes.map((_, i) => heatRamp(theme, i, classes.length));
  for (let column = 0; column < drawn.columns; column++) {
    const [left, right] = [edgeX(column), edgeX(column + 1)];
    for (let row = 0; row < rows; row++) {
      const at = classOf(classes, drawn.cells[column * rows + row] as number);
      if (at < 0) continue;
      const top = edgeY(row + 1);
      context.fillStyle = ramp[at] as string;
      context.fillRect(left, top, right - left, edgeY(row) - top);
    }
  }
}

/** Times that no agent covered are hatched: their emptiness says nothing. */
function paintGaps(context: CanvasRenderingContext2D, scene: HeatScene, plot: Plot): void {
  const { grid, gaps, ratio, colour } = scene;
  const span = grid.stepMs * grid.columns;
  context.strokeStyle = colour("--hatch");
  context.lineWidth = ratio;
  for (const [from, until] of gaps) {
    const part = (ms: number) => Math.min(Math.max((ms - grid.from) / span, 0), 1) * plot.width;
    const [left, right] = [part(from), part(until)];
    if (right - left < 1) continue;
    stripes(context, [plot.left + left, plot.top, right - left, plot.height], 8 * ratio);
  }
}

function paintAxes(context: CanvasRenderingContext2D, scene: HeatScene, plot: Plot): void {
  const { grid, ratio, colour } = scene;
  context.fillStyle = colour("--dim");
  context.font = canvasFont(ratio);
  context.textAlign = "right";
  const unit =
    grid.stepMs >= 60_000
      ? ([60_000, "min"] as const)
      : grid.stepMs >= 1_000
        ? ([1_000, "s"] as const)
        : ([1, "ms"] as const);
  for (const part of [0, 0.5, 1]) {
    context.textBaseline = part === 0 ? "bottom" : part === 1 ? "top" : "middle";
    const text = `${axisNumber((part * grid.stepMs) / unit[0])} ${unit[1]}`;
    context.fillText(text, plot.left - 5 * ratio, plot.top + plot.height * (1 - part));
  }
  const span = grid.stepMs * grid.columns;
  const bottom = plot.top + plot.height;
  paintTimeAxis(
    context,
    {
      range: { from: grid.from, until: grid.from + span },
      most: Math.max(2, Math.floor(plot.width / ratio / 90)),
      left: plot.left,
      right: plot.left + plot.width,
      top: bottom + 4 * ratio,
      zoneLeft: 2 * ratio,
      air: 4 * ratio,
    },
    (x) => context.fillRect(Math.round(x), bottom, Math.max(1, Math.round(ratio)), 3 * ratio),
  );
}

/** A line that is seen on every colour: the side's own on a broader one of the ground. */
function paintMark(
  context: CanvasRenderingContext2D,
  scene: HeatScene,
  plot: Plot,
  cells: readonly [number, number],
  letter: "A" | "B",
): void {
  const { grid, ratio, colour } = scene;
  const corners = outline(grid, cells).map(
    ([column, row]) =>
      [
        plot.left + (column * plot.width) / grid.columns,
        plot.top + plot.height - (row * plot.height) / grid.rows,
      ] as const,
  );
  context.beginPath();
  corners.forEach(([x, y], i) => {
    if (i === 0) context.moveTo(Math.round(x), Math.round(y));
    else context.lineTo(Math.round(x), Math.round(y));
  });
  context.closePath();
  const side = colour(letter === "A" ? "--side-a" : "--side-b");
  context.lineJoin = "round";
  for (const [style, width] of [
    [colour("--panel"), 4.5],
    [side, 2],
  ] as const) {
    context.strokeStyle = style;
    context.lineWidth = width * ratio;
    if (style === side && letter === "A") context.setLineDash([6 * ratio, 4 * ratio]);
    context.stroke();
  }
  context.setLineDash([]);
  const [x, y] = corners[1] as readonly [number, number];
  const box = 14 * ratio;
  const left = Math.min(Math.round(x), plot.left + plot.width - box);
  const top = Math.max(Math.round(y) - box, 0);
  context.fillStyle = side;
  context.fillRect(left, top, box, box);
  context.fillStyle = colour("--panel");
  context.font = canvasFont(ratio, "bold");
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(letter, left + box / 2, top + box / 2 + ratio * 0.5);
  context.textAlign = "left";
}

function paintCursor(context: CanvasRenderingContext2D, scene: HeatScene, plot: Plot, cell: number): void {
  const { grid, ratio, colour } = scene;
  const [column, row] = [Math.floor(cell / grid.rows), cell % grid.rows];
  const left = plot.left + (column * plot.width) / grid.columns;
  const right = Math.max(plot.left + ((column + 1) * plot.width) / grid.columns, left + 4 * ratio);
  const top = plot.top + plot.height - ((row + 1) * plot.height) / grid.rows;
  const bottom = plot.top + plot.height - (row * plot.height) / grid.rows;
  for (const [style, width] of [
    [colour("--panel"), 4],
    [colour("--text"), 1.5],
  ] as const) {
    context.strokeStyle = style;
    context.lineWidth = width * ratio;
    context.strokeRect(left - ratio, top - ratio, right - left + 2 * ratio, bottom - top + 2 * ratio);
  }
}
