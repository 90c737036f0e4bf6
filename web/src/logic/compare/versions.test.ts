import { describe, expect, it } from "vitest";
import type { SeriesAnswer } from "../../api/types.ts";
import { commonSelector, ofAllVersions, runsOf, versionPair, windowsAround } from "./versions.ts";

/** Levels of each version in steps of ten seconds. */
function answer(levels: Record<string, (number | null)[]>): SeriesAnswer {
  const steps = Math.max(...Object.values(levels).map((of) => of.length));
  const times = Array.from({ length: steps }, (_, i) => i * 10_000);
  return {
    from: 0,
    until: steps * 10_000,
    step_ms: 10_000,
    by: "version",
    unit: "cores",
    times,
    covered: times.map(() => 1),
    idle: [],
    capacity: [],
    series: Object.entries(levels).map(([value, cores]) => ({
      value,
      cores,
      samples: cores.reduce<number>((sum, level) => sum + (level ?? 0) * 200, 0),
      cpu_seconds: 0,
    })),
    other: null,
  };
}

const pairOf = (levels: Record<string, (number | null)[]>, wanted: string[] = []) =>
  versionPair(runsOf(answer(levels)), wanted, "shop");

describe("two versions", () => {
  it("are those with most samples, the older one first, in equal windows beside the change", () => {
    const pair = pairOf({ "15": [0, 0, 0, 1, 3, 3, 3, 3], "14": [2, 2, 2, 1, 0, 0, 0, 0], "13": [0.1, 0, 0, 0, 0] });
    if (typeof pair === "string") throw new Error(pair);
    expect(pair.versions).toEqual(["14", "15"]);
    // The step in which both ran is on neither side.
    expect([pair.base, pair.comparison]).toEqual([
      { from: 0, until: 30_000 },
      { from: 40_000, until: 70_000 },
    ]);
    expect(pair.said).toMatch(/A is 14 \(1.400 samples\), which ran first, B is 15 .*of 3 versions .*30.*s each/);
  });

  it("are the chosen ones where some are, also with fewer samples", () => {
    const pair = pairOf({ "3": [0, 0, 5, 5], "2": [0, 1, 0, 0], "1": [1, 0, 0, 0] }, ["1", "2"]);
    expect(typeof pair === "string" ? pair : pair.versions).toEqual(["1", "2"]);
    const one = pairOf({ "3": [0, 0, 5, 5], "2": [0, 1, 0, 0], "1": [1, 0, 0, 0] }, ["1"]);
    expect(typeof one === "string" ? one : one.versions).toEqual(["1", "3"]);
  });

  it("that ran at once have one window, and the order of their numbers", () => {
    const pair = pairOf({ "1.10": [1, 1, 1, 1], "1.9": [1, 1, 1, 1] });
    if (typeof pair === "string") throw new Error(pair);
    expect(pair.versions).toEqual(["1.9", "1.10"]);
    expect(pair.base).toEqual(pair.comparison);
    expect(pair.said).toContain("in which both ran");
  });

  it("are said to be missing where there are none", () => {
    expect(pairOf({ "15": [1, 1] })).toContain("Only version 15 of shop");
    expect(pairOf({ "": [1, 1] })).toContain("Nothing of shop has a version");
  });
});

describe("windows around a moment", () => {
  const range = { from: 0, until: 100_000 };
  it("are equal, within the range, and hold no other change", () => {
    expect(windowsAround(40_000, range, [], 1e9)).toEqual({
      base: { from: 0, until: 40_000 },
      comparison: { from: 40_000, until: 80_000 },
    });
    expect(windowsAround(40_000, range, [30_000, 90_000, 40_000], 1e9)?.base).toEqual({ from: 30_000, until: 40_000 });
    expect(windowsAround(40_000, range, [], 50_000)?.comparison).toEqual({ from: 40_000, until: 50_000 });
    expect(windowsAround(200, range, [], 1e9)).toBeNull();
  });
});

describe("selectors", () => {
  it("have in common what both ask, and lose what leaves one version", () => {
    const [a, b] = ['{service="shop",version="14"}', '{service="shop",version="15"}'];
    expect(commonSelector(a, b)).toBe('{service="shop"}');
    expect(commonSelector(a, "")).toBe("");
    expect(commonSelector(a, "{")).toBe("");
    expect(ofAllVersions(a)).toBe('{service="shop"}');
    expect(ofAllVersions('{"service.version"="14",node="a"}')).toBe('{node="a"}');
  });
});
