import { describe, expect, it } from "vitest";
import { baselineOf } from "../compare/baseline.ts";
import { courseStack } from "../fixtures.ts";
import { historyOf } from "../time/windows.ts";
import { changePoints, changeText, largestChange, lifetimeOf } from "./changePoints.ts";

/** A level with a scatter of a tenth, the same each time. */
function level(mean: number, steps: number, seed = 1): number[] {
  let state = seed;
  return Array.from({ length: steps }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return mean * (0.9 + (0.2 * state) / 2 ** 32);
  });
}

/** A course as samples tell it: so many of each step as chance makes of its level, `each` a step at a level of one. */
function sampled(levels: readonly number[], each: number, seed: number) {
  let state = seed;
  const chance = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  const poisson = (mean: number) => {
    const [least, rest] = [Math.exp(-mean), { product: chance(), count: 0 }];
    for (; rest.product > least; rest.count++) rest.product *= chance();
    return rest.count;
  };
  return courseStack(
    levels.map((level) => poisson(level * each) / each),
    each,
  );
}

const changed = (stack: ReturnType<typeof sampled>) => changePoints(stack).filter(({ kind }) => kind === "changed");
const same = (level: number, steps: number): number[] => Array.from({ length: steps }, () => level);
const SEEDS = Array.from({ length: 100 }, (_, i) => i * 7919 + 1);

const nothing = (steps: number): number[] => Array.from({ length: steps }, () => 0);
const unwatched = (steps: number): null[] => Array.from({ length: steps }, () => null);
const points = (...values: (number | null)[][]) => changePoints(courseStack(values.flat()));
const window = (from: number, until: number) => ({ from: from * 1000, until: until * 1000 });

describe("a change point", () => {
  it("lies where the level changes, and is compared across equally long, without the step in which it did", () => {
    const [point, ...more] = points(level(0.1, 30), level(1.2, 50, 7));
    expect(more).toEqual([]);
    expect(point).toMatchObject({ at: 30_000, kind: "changed" });
    expect(point?.before).toBeCloseTo(0.1, 1);
    expect(point?.after).toBeCloseTo(1.2, 1);
    expect(point?.pair).toEqual({ base: window(0, 29), comparison: window(31, 60) });
  });

  it("is one down as well", () => {
    const [point] = points(level(2, 20), level(0.5, 40, 3));
    expect(point?.pair).toEqual({ base: window(0, 19), comparison: window(21, 40) });
  });

  it("is told for each level, and the largest is the one that is offered", () => {
    const all = points(level(0.2, 40), level(1, 12, 5), level(0.2, 40, 9), level(0.5, 30, 2));
    expect(all.map(({ at }) => at)).toEqual([40_000, 52_000, 92_000]);
    expect(all[0]?.pair).toEqual({ base: window(28, 39), comparison: window(41, 52) });
    expect(largestChange(all)?.at).toBe(40_000);
  });

  it("is none where the course only scatters, rises slowly by little, or is short", () => {
    for (let seed = 1; seed < 200; seed++) expect(points(level(1, 200, seed))).toEqual([]);
    expect(points(Array.from({ length: 100 }, (_, i) => 1 + i / 1000))).toEqual([]);
    expect(points([])).toEqual([]);
    expect(points([null, null])).toEqual([]);
  });

  it("is found within nine minutes, of which the two levels have a minute each, in few samples", () => {
    // Steps of five seconds with 20 samples a second: S1 with real samples, 48 before the jump and 169 behind it.
    const course = [...same(0, 42), ...same(0.04, 12), ...same(0.141, 12), ...same(0, 42)];
    const found = SEEDS.filter((seed) => {
      const [point, ...more] = changed(sampled(course, 100, seed));
      return more.length === 0 && point !== undefined && Math.abs(point.at - 54_000) <= 3_000;
    });
    expect(found.length).toBeGreaterThanOrEqual(90);
  });

  it("is none of samples whose number is chance, or where a course comes and goes", () => {
    for (const [level, steps, each] of [
      [0.005, 120, 20],
      [0.1, 180, 20],
      [1, 108, 100],
      [0.003, 180, 100],
    ] as const)
      for (const seed of SEEDS) expect(changed(sampled(same(level, steps), each, seed))).toEqual([]);
    // Some seconds of work, and some without: neighbours are alike.
    const bursts = Array.from({ length: 180 }, (_, i) => (Math.floor(i / 6) % 2 === 0 ? 0.2 : 0.1));
    for (const seed of SEEDS) expect(changed(sampled(bursts, 100, seed))).toEqual([]);
  });

  it("is a start where nothing ran before, and an end where nothing did afterwards: neither is compared across", () => {
    const all = points(nothing(240), level(0.5, 60, 3), level(1.5, 60, 4), nothing(30));
    expect(all.map(({ at, kind }) => [at, kind])).toEqual([
      [240_000, "started"],
      [300_000, "changed"],
      [360_000, "ended"],
    ]);
    expect(all[0]?.pair).toBeNull();
    expect(all[2]?.pair).toBeNull();
    expect(all[1]?.pair?.base.from).toBeGreaterThan(240_000);
    expect(all[1]?.pair?.comparison.until).toBeLessThanOrEqual(360_000);
    // Three seconds of it, and no more, say nothing of a level.
    expect(points(nothing(240), level(0.5, 3, 3)).map(({ kind }) => kind)).toEqual(["started"]);
  });

  it("is no start where an agent began, or where samples are rare", () => {
    expect(points(unwatched(60), level(0.5, 60, 3))).toEqual([]);
    const rare = Array.from({ length: 100 }, (_, i) => (i % 9 === 5 ? 0.05 : 0));
    expect(changePoints(courseStack(rare, 20))).toEqual([]);
    expect(lifetimeOf(courseStack(rare, 20))).toEqual({ ...window(0, 100), started: null, ended: null });
  });

  it("has windows of covered time alone", () => {
    const [point] = points([null], level(0.1, 20), unwatched(2), level(0.1, 6, 2), level(1, 20, 7), unwatched(3));
    expect(point?.at).toBe(29_000);
    const { base, comparison } = point?.pair ?? { base: window(0, 0), comparison: window(0, 0) };
    // Of the old level, what is longest without a gap.
    expect(base).toEqual(window(2, 21));
    expect(comparison).toEqual(window(30, 49));
  });
});

describe("side A where nobody chose one", () => {
  const chosen = (given: ReturnType<typeof window>, isPicked: boolean, ...values: (number | null)[][]) => {
    const { from } = historyOf(given);
    return baselineOf(courseStack(values.flat(), 20, from), given, isPicked);
  };

  it("is what lies just before a window that was picked, where it ran there", () => {
    const { base, comparison, said } = chosen(window(1000, 1060), true, level(1, 120));
    expect([base, comparison]).toEqual([window(940, 1000), window(1000, 1060)]);
    expect(said).toMatch(/previous window \(1.min\)/);
  });

  it("begins where the process did, and B is as long", () => {
    // Of four minutes before it lived three seconds and a minute.
    const given = window(1000, 1240);
    const { base, comparison, said } = chosen(given, true, nothing(177), level(1, 63), level(3, 240, 4));
    expect(base).toEqual(window(938, 1000));
    expect(comparison).toEqual(window(1000, 1062));
    expect(said).toContain("it started at");
  });

  it("is the first half of what ran, where nothing or too little ran before", () => {
    const given = window(1000, 1240);
    const { base, comparison, said } = chosen(given, true, nothing(237), level(1, 243));
    expect([base, comparison]).toEqual([window(1000, 1120), window(1120, 1240)]);
    expect(said).toContain("it started at");
    // A fresh page: the agent is four minutes old, of fifteen.
    const fresh = chosen(window(1000, 1900), true, unwatched(900 + 660), level(1, 240));
    expect([fresh.base, fresh.comparison]).toEqual([window(1660, 1780), window(1780, 1900)]);
    expect(fresh.said).toContain("no agent covered what was before");
  });

  it("is the first half of a range that follows the present, of its covered part", () => {
    const all = chosen(window(1000, 1100), false, level(1, 200));
    expect([all.base, all.comparison]).toEqual([window(1000, 1050), window(1050, 1100)]);
    expect(all.said).toBe("Baseline: first half of this range, B the second");
    const part = chosen(window(1000, 1100), false, unwatched(140), level(1, 60));
    expect([part.base, part.comparison]).toEqual([window(1040, 1070), window(1070, 1100)]);
    expect(part.said).toContain("no agent covered what was before");
    // The newest samples are still on their way.
    const late = chosen(window(1000, 1100), false, level(1, 180), unwatched(20));
    expect([late.base, late.comparison]).toEqual([window(1000, 1040), window(1040, 1080)]);
    expect(late.said).toContain("nothing is known yet of what came after");
  });

  it("stays just before B where nothing ran at all, and says so", () => {
    const { base, said } = chosen(window(1000, 1060), true, nothing(120));
    expect(base).toEqual(window(940, 1000));
    expect(said).toContain("nothing ran");
  });
});

describe("a change in a line", () => {
  const point = { at: 0, before: 0.042, after: 0.088, pair: null } as const;
  const tell = (kind: "changed" | "started", level: (value: number) => string, unit: string) =>
    changeText({ ...point, kind }, level, unit);

  it("has its levels in the unit of the chart", () => {
    expect(tell("changed", (value) => value.toFixed(3), "cores")).toMatch(/: 0\.042 → 0\.088 cores$/);
    expect(tell("changed", (value) => (value * 1000).toFixed(1), "ms/s")).toMatch(/: 42\.0 → 88\.0 ms\/s$/);
    expect(tell("started", String, "cores")).toMatch(/: started$/);
  });
});
