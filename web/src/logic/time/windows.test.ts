import { describe, expect, it } from "vitest";
import {
  around,
  before,
  goOn,
  halves,
  LONGEST_MS,
  ordered,
  pairOf,
  placeWithin,
  SHORTEST_MS,
  windowOf,
  zoomAround,
  zoomOut,
} from "./windows.ts";

const bounds = { from: 0, until: 100_000 };

describe("windows", () => {
  it("are read from texts; what is no time is the last hour", () => {
    expect(windowOf({ from: "now-10s", until: "now" }, 50_000)).toEqual({ from: 40_000, until: 50_000 });
    expect(windowOf({ from: "?", until: "" }, 4_000_000)).toEqual({ from: 400_000, until: 4_000_000 });
  });

  it("orders what was dragged either way", () => {
    expect(ordered(5_000.4, 1_000)).toEqual({ from: 1_000, until: 5_000 });
    expect(ordered(7, 7)).toEqual({ from: 7, until: 7 + SHORTEST_MS });
  });

  it("zooms out around the middle, not beyond now", () => {
    expect(zoomOut({ from: 40_000, until: 60_000 }, 1e9)).toEqual({ from: 30_000, until: 70_000 });
    expect(zoomOut({ from: 80_000, until: 100_000 }, 100_000)).toEqual({ from: 60_000, until: 100_000 });
  });

  it("is never longer than the server answers for", () => {
    const year = 365 * 86_400_000;
    const now = 3 * year;
    expect(zoomOut({ from: now - year, until: now }, now)).toEqual({ from: now - LONGEST_MS, until: now });
    const wide = zoomAround({ from: now - year, until: now }, now - year / 2, 4, now);
    expect(wide.until - wide.from).toBe(LONGEST_MS);
    // Of windows that lie further apart, the later one is in the chart.
    const chart = around({ from: 1_000, until: 2_000 }, { from: 2 * year, until: 2 * year + 1_000 });
    expect(chart.until - chart.from).toBe(LONGEST_MS);
    expect(chart.until).toBeGreaterThan(2 * year);
  });

  it("zooms around a moment, not below the shortest window and not beyond now", () => {
    expect(zoomAround({ from: 0, until: 100_000 }, 25_000, 0.5, 1e9)).toEqual({ from: 12_500, until: 62_500 });
    expect(zoomAround({ from: 0, until: 100_000 }, 50_000, 2, 100_000)).toEqual({ from: -100_000, until: 100_000 });
    expect(zoomAround({ from: 0, until: 2_000 }, 1_000, 0.1, 1e9)).toEqual({ from: 500, until: 1_500 });
  });

  it("knows the window before and the chart around both", () => {
    const b = { from: 60_000, until: 70_000 };
    expect(before(b)).toEqual({ from: 50_000, until: 60_000 });
    expect(around({ from: 20_000, until: 30_000 }, b)).toEqual({ from: 13_750, until: 76_250 });
  });
});

describe("the pair of a comparison", () => {
  const now = 1_000_000_000;

  it("takes what the address says", () => {
    const pair = pairOf({ from: "900000", until: "960000", baseFrom: "100000", baseUntil: "160000" }, now);
    expect(pair).toEqual({ base: { from: 100_000, until: 160_000 }, comparison: { from: 900_000, until: 960_000 } });
  });

  it("halves the time that counts", () => {
    expect(halves({ from: 0, until: 100 })).toEqual({
      base: { from: 0, until: 50 },
      comparison: { from: 50, until: 100 },
    });
    // 20 and 50 on both sides of the hole: half of 70 is 15 behind it.
    const late: [number, number] = [20, 50];
    expect(halves({ from: 0, until: 100, except: late })).toEqual({
      base: { from: 0, until: 65, except: late },
      comparison: { from: 65, until: 100 },
    });
    const early: [number, number] = [60, 80];
    expect(halves({ from: 0, until: 100, except: early })).toEqual({
      base: { from: 0, until: 40 },
      comparison: { from: 40, until: 100, except: early },
    });
    // What is left out up to an end leaves one piece.
    expect(halves({ from: 0, until: 100, except: [60, 100] }).base).toEqual({ from: 0, until: 30 });
  });

  it("puts A before a chosen window, and halves a range that follows the present", () => {
    expect(pairOf({ from: "900000", until: "960000", baseFrom: "", baseUntil: "" }, now).base).toEqual({
      from: 840_000,
      until: 900_000,
    });
    expect(pairOf({ from: "now-10s", until: "now", baseFrom: "", baseUntil: "" }, now)).toEqual({
      base: { from: now - 10_000, until: now - 5_000 },
      comparison: { from: now - 5_000, until: now },
    });
  });

  it("brings windows into a new chart only where they would be out of sight", () => {
    const pair = { base: { from: 10_000, until: 20_000 }, comparison: { from: 50_000, until: 60_000 } };
    expect(placeWithin(pair, bounds)).toBe(pair);
    const chart = { from: 200_000, until: 280_000 };
    expect(placeWithin(pair, chart)).toEqual({
      base: { from: 210_000, until: 230_000 },
      comparison: { from: 250_000, until: 270_000 },
    });
  });
});

describe("going on behind an answer that was cut", () => {
  it("goes to the last moment's millisecond, and behind it where that is the begin", () => {
    expect(goOn(1000, 1002.7)).toEqual({ from: 1002, skips: false });
    expect(goOn(1000, 1000.9)).toEqual({ from: 1001, skips: true });
    expect(goOn(1000, 1000)).toEqual({ from: 1001, skips: true });
  });
});
