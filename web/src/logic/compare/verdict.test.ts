import { describe, expect, it } from "vitest";
import { controlText, verdictOf } from "./verdict.ts";

const judged = (before: number, after: number, tested: number, significant: number) => ({
  base: { samples: before },
  comparison: { samples: after },
  tested,
  significant,
});

describe("the verdict", () => {
  it("counts what differs, of frames and else of functions", () => {
    expect(verdictOf(judged(900, 800, 40, 3), 9)).toBe("3 of 40 tested frames differ");
    expect(verdictOf(judged(900, 800, 40, 0), 0)).toBe("nothing differs beyond chance");
    // A function that many call is in many frames, each too small to tell.
    expect(verdictOf(judged(900, 800, 40, 0), 1)).toBe(
      "no frame by itself differs beyond chance; put together, 1 function of the table",
    );
  });

  it("says what to do where there is nothing to tell", () => {
    expect(verdictOf(judged(0, 800, 0, 0), 0)).toMatch(/^A has no samples, .*: move A/);
    expect(verdictOf(judged(800, 0, 0, 0), 0)).toMatch(/^B has no samples, .*: move B/);
    expect(verdictOf(judged(3, 2, 0, 0), 0)).toMatch(/^too few samples .*: longer windows/);
  });
});

describe("the control", () => {
  it("tells how much noise looks like a change, and where it tells nothing", () => {
    expect(controlText(judged(500, 480, 77, 0))).toBe(
      "A/A control: 0 of 77 frames of A's own halves would be coloured",
    );
    expect(controlText(judged(500, 480, 77, 2))).toMatch(/2 of 77 .*: A is not steady$/);
    expect(controlText(judged(500, 0, 0, 0))).toContain("one half of A has no samples");
    expect(controlText(judged(2, 2, 0, 0))).toContain("too few samples");
  });
});
