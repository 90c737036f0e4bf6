import { describe, expect, it } from "vitest";
import { jumpOf, pairAt } from "./jump.ts";

/** A level with a scatter of a tenth, the same each time. */
function level(mean: number, steps: number, seed = 1): number[] {
  let state = seed;
  return Array.from({ length: steps }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return mean * (0.9 + (0.2 * state) / 2 ** 32);
  });
}

describe("a jump", () => {
  it("is found where the level changes, without the step in which it did", () => {
    const jump = jumpOf([...level(0.1, 30), ...level(1.2, 30, 7)]);
    expect(jump?.before).toMatchObject({ from: 0, until: 29 });
    expect(jump?.after).toMatchObject({ from: 31, until: 60 });
    expect(jump?.before.mean).toBeCloseTo(0.1, 1);
    expect(jump?.after.mean).toBeCloseTo(1.2, 1);
  });

  it("is one down as well, and from nothing to something", () => {
    expect(jumpOf([...level(2, 20), ...level(0.5, 40, 3)])?.after.from).toBe(21);
    expect(jumpOf([...level(0, 20), ...level(0.5, 10, 3)])?.after.from).toBe(21);
  });

  it("of what came and went again has both edges", () => {
    const jump = jumpOf([...level(0.2, 40), ...level(1, 12, 5), ...level(0.2, 40, 9)]);
    expect(jump?.before).toMatchObject({ from: 0, until: 39 });
    expect(jump?.after).toMatchObject({ from: 41, until: 52 });
    expect(jump?.after.mean).toBeGreaterThan(0.9);
  });

  it("is none where the course only scatters, rises slowly by little, or is short", () => {
    for (let seed = 1; seed < 200; seed++) expect(jumpOf(level(1, 200, seed))).toBeNull();
    expect(jumpOf(Array.from({ length: 100 }, (_, i) => 1 + i / 1000))).toBeNull();
    expect(jumpOf([0, 0, 0, 5, 5, 5])).toBeNull();
    expect(jumpOf([])).toBeNull();
    expect(jumpOf([null, null])).toBeNull();
  });

  it("leaves out what nobody watched", () => {
    const values = [null, ...level(0.1, 20), null, null, ...level(1, 20, 7), null];
    const jump = jumpOf(values);
    expect(jump?.before.from).toBe(1);
    expect(jump?.after.until).toBe(values.length - 1);
    const edges = Array.from({ length: values.length + 1 }, (_, i) => i * 1000);
    const pair = jump === null ? null : pairAt(jump, edges);
    expect(pair?.base).toEqual({ from: 1000, until: 20_000 });
    expect(pair?.comparison).toEqual({ from: 24_000, until: (values.length - 1) * 1000 });
  });
});
