import { describe, expect, it } from "vitest";
import { isSame, SHORTEST_MS } from "../time/windows.ts";
import { dragged, move, moveEdge, overlapping, placesBefore, uncovered } from "./dragging.ts";

const bounds = { from: 0, until: 100_000 };

describe("a window of a comparison", () => {
  it("moves as a whole and stops at the edge with its length", () => {
    expect(move({ from: 10_000, until: 30_000 }, 5_000, bounds)).toEqual({ from: 15_000, until: 35_000 });
    expect(move({ from: 10_000, until: 30_000 }, -50_000, bounds)).toEqual({ from: 0, until: 20_000 });
    expect(move({ from: 10_000, until: 30_000 }, 500_000, bounds)).toEqual({ from: 80_000, until: 100_000 });
  });

  it("knows where a window to compare with usually lies", () => {
    const range = { from: 7_200_000, until: 7_260_000 };
    const places = new Map(placesBefore(range));
    expect(places.get("previous window")).toEqual({ from: 7_140_000, until: 7_200_000 });
    expect(places.get("an hour earlier")).toEqual({ from: 3_600_000, until: 3_660_000 });
    const named = (window: typeof range) => placesBefore(range).find(([, place]) => isSame(place, window))?.[0];
    expect(named({ ...range })).toBe("same window");
    expect(named({ from: 1, until: 2 })).toBeUndefined();
  });

  it("moves one edge, never past the other", () => {
    const range = { from: 10_000, until: 30_000 };
    expect(moveEdge(range, "from", 20_000, bounds)).toEqual({ from: 20_000, until: 30_000 });
    expect(moveEdge(range, "from", 90_000, bounds).from).toBe(30_000 - SHORTEST_MS);
    expect(moveEdge(range, "until", -5, bounds).until).toBe(10_000 + SHORTEST_MS);
    expect(moveEdge(range, "until", 1e9, bounds).until).toBe(100_000);
  });
});

describe("both windows", () => {
  it("keeps lengths alike where they are locked, within what the chart shows", () => {
    const pair = { base: { from: 10_000, until: 30_000 }, comparison: { from: 70_000, until: 90_000 } };
    expect(dragged(pair, "comparison", "until", 5_000, bounds, false)).toEqual({
      ...pair,
      comparison: { from: 70_000, until: 95_000 },
    });
    expect(dragged(pair, "comparison", "until", 5_000, bounds, true)).toEqual({
      base: { from: 10_000, until: 35_000 },
      comparison: { from: 70_000, until: 95_000 },
    });
    expect(dragged(pair, "comparison", "from", -20_000, bounds, true).base).toEqual({ from: 0, until: 40_000 });
    expect(dragged(pair, "base", "body", 5_000, bounds, true).comparison).toBe(pair.comparison);
  });

  it("knows when one window hides the other", () => {
    const base = { from: 10_000, until: 20_000 };
    expect(overlapping({ base, comparison: base })).toBe(true);
    expect(overlapping({ base, comparison: { from: 0, until: 90_000 } })).toBe(true);
    expect(overlapping({ base, comparison: { from: 16_000, until: 90_000 } })).toBe(false);
  });
});

describe("what lies in no window", () => {
  const range = { from: 0, until: 100 };
  it("is before, between and behind them, within the range", () => {
    const [a, b] = [
      { from: 10, until: 30 },
      { from: 60, until: 90 },
    ];
    const gaps = [
      { from: 0, until: 10 },
      { from: 30, until: 60 },
      { from: 90, until: 100 },
    ];
    expect(uncovered(range, [a, b])).toEqual(gaps);
    expect(uncovered(range, [b, a])).toEqual(gaps);
    expect(
      uncovered(range, [
        { from: -50, until: 40 },
        { from: 20, until: 150 },
      ]),
    ).toEqual([]);
    expect(uncovered(range, [{ from: 110, until: 150 }])).toEqual([range]);
    expect(
      uncovered(range, [
        { from: -20, until: -10 },
        { from: 0, until: 100 },
      ]),
    ).toEqual([]);
  });
});
