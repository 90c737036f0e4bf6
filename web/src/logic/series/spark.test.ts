import { describe, expect, it } from "vitest";
import { listStep, sparkPath } from "./spark.ts";

describe("a small line", () => {
  it("runs from edge to edge below its highest value", () => {
    expect(sparkPath([0, 2, 1], 60, 20)).toBe("M0 20L30 0L60 10");
  });

  it("breaks where nobody watched, and lies on the ground where nothing ran", () => {
    expect(sparkPath([1, null, 1, 0.5], 30, 10)).toBe("M0 0M20 0L30 5");
    expect(sparkPath([0, 0], 30, 10)).toBe("M0 10L30 10");
    expect(sparkPath([], 30, 10)).toBe("");
  });

  it("has steps of whole seconds", () => {
    expect([listStep(3_600_001), listStep(3_600_000), listStep(3_599_000)]).toEqual(["120s", "60s", "60s"]);
    expect([listStep(900_000), listStep(10_000), listStep(-5), listStep(604_800_000)]).toEqual([
      "15s",
      "1s",
      "1s",
      "10080s",
    ]);
  });
});
