import { describe, expect, it } from "vitest";
import { levelTicks, timeTicks } from "./ticks.ts";

describe("labels of an axis", () => {
  it("stand at round times within the range", () => {
    const { ticks, stepMs } = timeTicks(1_000_300, 1_010_000, 10);
    expect(stepMs).toBe(1_000);
    expect(ticks[0]).toBe(1_001_000);
    expect(ticks.at(-1)).toBe(1_010_000);
    expect(timeTicks(0, 5, 5).ticks).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("are not more than there is room for, however long the range is", () => {
    const year = 365 * 86_400_000;
    for (const length of [1, 50, 7_000, 86_400_000, 20 * year]) {
      expect(timeTicks(1_700_000_000_000, 1_700_000_000_000 + length, 6).ticks.length).toBeLessThanOrEqual(7);
    }
  });

  it("stand at round levels from zero", () => {
    expect(levelTicks(2.12, 5)).toEqual([0, 0.5, 1, 1.5, 2]);
    expect(levelTicks(0.3, 3)).toEqual([0, 0.1, 0.2, 0.3]);
    expect(levelTicks(64, 5)).toEqual([0, 20, 40, 60]);
    expect(levelTicks(1, 0)).toEqual([0, 1]);
    expect(levelTicks(0.0004, 4)).toEqual([0, 0.0001, 0.0002, 0.0003, 0.0004]);
  });
});
