import { describe, expect, it } from "vitest";
import { parseSpan, spanText } from "../time/spans.ts";
import {
  cellAt,
  cellOf,
  cellsOf,
  classesOf,
  classOf,
  classText,
  columnText,
  type Grid,
  merged,
  middleOf,
  moveCell,
  outline,
  samplesWithin,
  shownCells,
  spanOf,
  spanWords,
} from "./heatmap.ts";
import { aligned, columnMs } from "./marks.ts";

const GRID: Grid = { from: 1_000_000, stepMs: 1_000, columns: 4, rows: 50 };

describe("cells and time", () => {
  it("has a second a column as long as they can be told apart", () => {
    expect(columnMs({ from: 0, until: 900_000 }, "")).toBe(1_000);
    expect(columnMs({ from: 0, until: 3_600_000 }, "")).toBe(5_000);
    expect(columnMs({ from: 0, until: 900_000 }, "10")).toBe(10_000);
    expect(columnMs({ from: 0, until: 86_400_000 }, "1")).toBe(300_000);
    expect(columnMs({ from: 0, until: 900_000 }, "nonsense")).toBe(1_000);
  });

  it("says how long columns and marks are", () => {
    expect([1_000, 30_000, 60_000, 3_600_000, 1_500].map(columnText)).toEqual(["1 s", "30 s", "1 min", "1 h", "1.5 s"]);
    expect(spanWords({ from: 61_100, until: 62_020 })).toMatch(/:01\.100 – .*:02\.020$/);
  });

  it("lets offsets be those of the clock", () => {
    expect(aligned({ from: 1_234, until: 5_001 }, 1_000)).toEqual({ from: 1_000, until: 6_000 });
    expect(aligned({ from: 2_000, until: 2_000 }, 1_000)).toEqual({ from: 2_000, until: 3_000 });
  });

  it("finds the cell of a place, also beside the plot", () => {
    expect(cellAt(GRID, 0, 0)).toBe(0);
    expect(cellAt(GRID, 0.26, 0.5)).toBe(75);
    expect(cellAt(GRID, 1, 1)).toBe(199);
    expect(cellAt(GRID, -3, 7)).toBe(49);
  });

  it("makes a span of two cells in either order, and the same cells of the span", () => {
    const span = spanOf(GRID, 130, 75);
    expect(span).toEqual({ from: 1_001_500, until: 1_002_620 });
    expect(cellsOf(GRID, span)).toEqual([75, 130]);
    for (let cell = 0; cell < 200; cell++) expect(cellsOf(GRID, spanOf(GRID, cell, cell))).toEqual([cell, cell]);
    expect(cellsOf(GRID, { from: 0, until: 1_000_000 })).toBeNull();
    expect(cellsOf(GRID, { from: 1_004_000, until: 1_005_000 })).toBeNull();
    expect(cellsOf(GRID, { from: 0, until: 2_000_000 })).toEqual([0, 199]);
  });

  it("finds a cell again in the grid of a newer answer, by its moment", () => {
    const old = { from: 10_000, stepMs: 1000, columns: 10, rows: 10 };
    const newer = { ...old, from: 15_000 };
    for (const cell of [0, 57, 99]) expect(cellOf(old, middleOf(old, cell))).toBe(cell);
    expect(cellOf(newer, middleOf(old, 57))).toBe(7);
    // What lies beside it now: the nearest.
    expect(cellOf(newer, middleOf(old, 3))).toBe(0);
    expect(cellOf(old, middleOf(newer, 99))).toBe(99);
    // Of fewer rows the one that holds it.
    expect(cellOf({ ...old, rows: 2 }, middleOf(old, 57))).toBe(11);
  });

  it("outlines a part of a column, and a run over columns", () => {
    expect(outline(GRID, [10, 19])).toEqual([
      [0, 10],
      [0, 20],
      [1, 20],
      [1, 10],
    ]);
    expect(outline(GRID, [75, 160])).toHaveLength(8);
    expect(outline(GRID, [75, 160])).toContainEqual([3, 11]);
  });

  it("moves by keys and stops at the edges", () => {
    expect(moveCell(GRID, 0, "ArrowLeft")).toBe(0);
    expect(moveCell(GRID, 0, "ArrowUp")).toBe(1);
    expect(moveCell(GRID, 49, "ArrowUp")).toBe(49);
    expect(moveCell(GRID, 10, "End")).toBe(160);
    expect(moveCell(GRID, 10, "x")).toBeNull();
  });

  it("shows no cell that is shorter than the time between two samples", () => {
    const answer = (period_ns: number) => ({
      type: "cpu",
      query: "{}",
      from: 5_000,
      until: 7_000,
      unit: "samples",
      period_ns,
      samples: 200,
      exposure: { observed_cpu_seconds: 2, idle_share: 0, gaps: [], nodes: 1 },
      step_ns: 1_000_000_000,
      columns: 2,
      rows: 100,
      cells: Array.from({ length: 200 }, (_, i) => i % 2),
    });
    const fast = shownCells(answer(10_101_010));
    expect(fast.grid).toEqual({ from: 5_000, stepMs: 1_000, columns: 2, rows: 50 });
    expect(fast.cells).toEqual(new Array(100).fill(1));
    const slow = shownCells(answer(50_000_000));
    expect(slow.grid.rows).toBe(20);
    expect(slow.cells.reduce((sum, count) => sum + count, 0)).toBe(100);
    expect(shownCells(answer(51_000_000)).grid.rows).toBe(20);
    expect(shownCells(answer(5_000_000_000)).grid.rows).toBe(1);
  });

  it("adds up what is marked", () => {
    const cells = new Array(200).fill(0);
    cells[75] = 3;
    cells[76] = 4;
    expect(samplesWithin(cells, [75, 75])).toBe(3);
    expect(samplesWithin(cells, [0, 199])).toBe(7);
  });
});

describe("colours", () => {
  it("gives few counts a class each", () => {
    expect(classesOf([0, 0])).toEqual([]);
    expect(classesOf([0, 1, 2, 2, 1])).toEqual([1, 2]);
    expect(classText([1, 2], 1)).toBe("2");
  });

  it("are told in the unit of what they count", () => {
    const plain = (text: string) => text.replace(/\u202f/g, " ");
    const time = { name: "nanoseconds", isTime: true };
    expect([0, 1].map((i) => plain(classText([14_285_715, 200_000_000], i, time)))).toEqual([
      "up to 14.3 ms",
      "14.3 ms – 200 ms",
    ]);
    const bytes = { name: "bytes", isTime: false };
    expect(plain(classText([2 ** 20, 2 ** 21], 1, bytes))).toBe("1.00 MiB – 2.00 MiB");
  });

  it("keeps one burst from making the rest pale", () => {
    const cells = [...Array.from({ length: 1000 }, (_, i) => 1 + (i % 70)), 5_000];
    const bounds = classesOf(cells);
    expect(bounds).toHaveLength(7);
    expect(bounds[0]).toBeLessThanOrEqual(10);
    expect(bounds[6]).toBe(5_000);
    expect(classOf(bounds, 5_000)).toBe(6);
    expect(classOf(bounds, 0)).toBe(-1);
    for (const count of cells) expect(classOf(bounds, count)).toBeGreaterThanOrEqual(0);
    expect(classText(bounds, 0)).toBe("1–10");
  });

  it("draws the highest of what shares a pixel", () => {
    expect(merged([1, 0, 5, 0, 2, 0, 0, 7], 4, 2, 2)).toEqual({ cells: [5, 0, 2, 7], columns: 2 });
    expect(merged([1, 2], 1, 2, 10)).toEqual({ cells: [1, 2], columns: 1 });
  });
});

describe("spans in the address", () => {
  it("come back as they were written", () => {
    for (const span of [
      { from: 1_763_713_380_000, until: 1_763_713_380_020 },
      { from: 1_763_713_380_000.125, until: 1_763_713_380_001 },
    ])
      expect(parseSpan(spanText(span))).toEqual(span);
  });

  it("are nothing else", () => {
    for (const text of ["", "rest", "1", "2-1", "1-1", "a-b", "1-2-3", "-1-2", "1e9-2e9"])
      expect(parseSpan(text)).toBeNull();
  });
});
