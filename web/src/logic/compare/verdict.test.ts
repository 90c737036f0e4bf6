import { describe, expect, it } from "vitest";
import { controlText, verdictOf } from "./verdict.ts";

const judged = (before: number, after: number, tested: number, significant: number) => ({
  base: { samples: before },
  comparison: { samples: after },
  tested,
  significant,
});

describe("the verdict", () => {
  it("counts causes and frames, and else functions", () => {
    expect(verdictOf(judged(900, 800, 40, 26), 9, 1)).toBe("1 cause (26 of 40 frames)");
    expect(verdictOf(judged(900, 800, 40, 3), 9, 2)).toBe("2 causes (3 of 40 frames)");
    expect(verdictOf(judged(900, 800, 40, 3), 9, 0)).toBe("3 of 40 frames changed, and no frame explains it");
    expect(verdictOf(judged(900, 800, 40, 0), 0, 0)).toBe("no significant change");
    // A function that many call is in many frames, each too small to tell.
    expect(verdictOf(judged(900, 800, 40, 0), 1, 0)).toBe(
      "no significant change of a frame by itself; put together, 1 function of the table",
    );
  });

  it("says what to do where there is nothing to tell", () => {
    expect(verdictOf(judged(0, 800, 0, 0), 0, 0)).toMatch(/^A has no samples, .*: move A/);
    expect(verdictOf(judged(800, 0, 0, 0), 0, 0)).toMatch(/^B has no samples, .*: move B/);
    expect(verdictOf(judged(3, 2, 0, 0), 0, 0)).toMatch(/^too few samples .*: longer windows/);
  });
});

describe("the control", () => {
  it("tells how much noise looks like a change, and where it tells nothing", () => {
    expect(controlText(judged(500, 480, 77, 0))).toBe("A/A check passed (0 of 77)");
    expect(controlText(judged(500, 480, 77, 2))).toBe("Baseline unstable: A/A check found 2 of 77");
    expect(controlText(judged(500, 0, 0, 0))).toContain("one half of A has no samples");
    expect(controlText(judged(2, 2, 0, 0))).toContain("too few samples");
  });
});
