/**
 * A heatmap of time against the offset within each column, as B. Gregg and M. Spier's FlameScope (2018) draws it. Cells
 * are counted column by column, the earliest offset first, so that a span of time is a run of cells. In: the answer's
 * counts and Unix milliseconds. Out: cells, spans of time, classes of colour and outlines in units of columns and rows.
 */
import type { HeatmapAnswer } from "../../api/types.ts";
import { axisNumber } from "../text/format.ts";
import { amountShort, SAMPLES, type Unit } from "../text/unit.ts";
import { clockMs, type Window } from "../time/time.ts";

/** How many rows are shown, at most; each divides those that the server is asked for. */
const SHOWN_ROWS = [50, 25, 20, 10, 5, 4, 2, 1] as const;
/** Timers are that much faster than they say, at most. */
const TIMER_GRAIN = 0.95;
/**
 * Above this share of the cells that are not empty, counts are all of the highest class: one burst must not make the
 * rest pale.
 */
const BURSTS = 0.995;
export const CLASSES = 7;

export interface Grid {
  from: number;
  stepMs: number;
  columns: number;
  rows: number;
}

/**
 * The cells as they are shown: none is shorter than the time from one sample to the next, since finer ones would show
 * stripes that are the sampler's.
 */
export function shownCells(answer: HeatmapAnswer): { grid: Grid; cells: number[] } {
  const { from, step_ns, columns, period_ns, cells } = answer;
  const rows = SHOWN_ROWS.find((count) => answer.rows % count === 0 && step_ns / count >= period_ns * TIMER_GRAIN) ?? 1;
  const together = answer.rows / rows;
  const shown = new Array<number>(columns * rows).fill(0);
  cells.forEach((count, i) => {
    const at = Math.floor(i / together);
    shown[at] = (shown[at] as number) + count;
  });
  return { grid: { from, stepMs: step_ns / 1e6, columns, rows }, cells: shown };
}

function cellCount({ columns, rows }: Grid): number {
  return columns * rows;
}

/** The cell at a place of the plot; both in parts of its size, the height from the bottom. */
export function cellAt({ columns, rows }: Grid, x: number, height: number): number {
  const within = (part: number, count: number) => Math.min(Math.max(Math.floor(part * count), 0), count - 1);
  return within(x, columns) * rows + within(height, rows);
}

/** From the start of the earlier cell to the end of the later one. */
export function spanOf({ from, stepMs, rows }: Grid, a: number, b: number): Window {
  const cellMs = stepMs / rows;
  return { from: from + Math.min(a, b) * cellMs, until: from + (Math.max(a, b) + 1) * cellMs };
}

/** The moment in the middle of a cell: it tells the cell in another answer's grid, too. */
export function middleOf({ from, stepMs, rows }: Grid, cell: number): number {
  return from + ((cell + 0.5) * stepMs) / rows;
}

/** The cell of a moment; the nearest where it lies beside the grid. */
export function cellOf(grid: Grid, moment: number): number {
  const cell = Math.floor(((moment - grid.from) * grid.rows) / grid.stepMs);
  return Math.min(Math.max(cell, 0), cellCount(grid) - 1);
}

/** The cells that a span touches, first and last; null where it lies beside the grid. */
export function cellsOf(grid: Grid, span: Window): [number, number] | null {
  const cellMs = grid.stepMs / grid.rows;
  // A span that ends where a cell begins does not touch it.
  const first = Math.floor((span.from - grid.from) / cellMs + 1e-6);
  const last = Math.ceil((span.until - grid.from) / cellMs - 1e-6) - 1;
  if (last < 0 || first >= cellCount(grid) || last < first) return null;
  return [Math.max(first, 0), Math.min(last, cellCount(grid) - 1)];
}

/** `12:04:05.100 – 12:04:06.020`. */
export function spanWords({ from, until }: Window): string {
  return `${clockMs(from)} – ${clockMs(until)}`;
}

/** How long a column is: `5 s`, `10 min`. */
export function columnText(ms: number): string {
  for (const [unit, name] of [
    [3_600_000, "h"],
    [60_000, "min"],
  ] as const) {
    if (ms % unit === 0) return `${ms / unit} ${name}`;
  }
  return `${axisNumber(ms / 1000)} s`;
}

/** The corners of what a run of cells covers, in columns and rows from the earliest offset. */
export function outline({ rows }: Grid, [first, last]: readonly [number, number]): [number, number][] {
  const [c1, r1] = [Math.floor(first / rows), first % rows];
  const [c2, r2] = [Math.floor(last / rows), (last % rows) + 1];
  if (c1 === c2) {
    return [
      [c1, r1],
      [c1, r2],
      [c1 + 1, r2],
      [c1 + 1, r1],
    ];
  }
  return [
    [c1, r1],
    [c1, rows],
    [c2, rows],
    [c2, r2],
    [c2 + 1, r2],
    [c2 + 1, 0],
    [c1 + 1, 0],
    [c1 + 1, r1],
  ];
}

/** Where a key takes the cursor; it stops at the edges of the grid. */
export function moveCell(grid: Grid, cell: number, key: string): number | null {
  const { columns, rows } = grid;
  const [column, row] = [Math.floor(cell / rows), cell % rows];
  const at = (c: number, r: number) =>
    Math.min(Math.max(c, 0), columns - 1) * rows + Math.min(Math.max(r, 0), rows - 1);
  const moves: Record<string, () => number> = {
    ArrowLeft: () => at(column - 1, row),
    ArrowRight: () => at(column + 1, row),
    ArrowUp: () => at(column, row + 1),
    ArrowDown: () => at(column, row - 1),
    PageUp: () => at(column - 10, row),
    PageDown: () => at(column + 10, row),
    Home: () => at(0, row),
    End: () => at(columns - 1, row),
  };
  return moves[key]?.() ?? null;
}

/** Samples of a run of cells. */
export function samplesWithin(cells: readonly number[], [first, last]: readonly [number, number]): number {
  let sum = 0;
  for (let i = first; i <= last; i++) sum += cells[i] as number;
  return sum;
}

/** The highest count of each class of colour, ascending; none where all cells are empty. */
export function classesOf(cells: readonly number[]): number[] {
  const counts = cells.filter((count) => count > 0).sort((a, b) => a - b);
  const most = counts[counts.length - 1];
  if (most === undefined) return [];
  const usual = counts[Math.floor((counts.length - 1) * BURSTS)] as number;
  const classes = Math.min(CLASSES, usual);
  const bounds = Array.from({ length: classes }, (_, i) => Math.ceil((usual * (i + 1)) / classes));
  bounds[classes - 1] = most;
  return bounds;
}

/** The class of a count, or -1 for an empty cell. */
export function classOf(bounds: readonly number[], count: number): number {
  return count <= 0 ? -1 : bounds.findIndex((bound) => count <= bound);
}

/** What a class stands for: `3`, `4–9`; of what is no number of things, `up to 14 ms`, `14 ms – 29 ms`. */
export function classText(bounds: readonly number[], index: number, unit: Unit = SAMPLES): string {
  const below = bounds[index - 1] ?? 0;
  const most = bounds[index] as number;
  if (unit.name === "nanoseconds" || unit.name === "bytes") {
    const end = amountShort(most, unit);
    return index === 0 ? `up to ${end}` : `${amountShort(below, unit)} – ${end}`;
  }
  const least = below + 1;
  return least === most ? `${most}` : `${least}–${most}`;
}

/** Of columns that share a pixel the highest count is drawn, so that a burst does not vanish. */
export function merged(
  cells: readonly number[],
  columns: number,
  rows: number,
  pixels: number,
): { cells: number[]; columns: number } {
  if (columns <= pixels) return { cells: cells as number[], columns };
  const out = new Array<number>(pixels * rows).fill(0);
  for (let column = 0; column < columns; column++) {
    const pixel = Math.floor((column * pixels) / columns);
    for (let row = 0; row < rows; row++) {
      const at = pixel * rows + row;
      out[at] = Math.max(out[at] as number, cells[column * rows + row] as number);
    }
  }
  return { cells: out, columns: pixels };
}
