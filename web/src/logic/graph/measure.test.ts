import { describe, expect, it } from "vitest";
import { answerOf, diffOf } from "../fixtures.ts";
import { SAMPLES } from "../text/unit.ts";
import { diffTreeOf, ROOT, treeOf } from "../tree/tree.ts";
import { coresOf, frameText, measureOf, measureOfPair, secondsOf } from "./measure.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");

describe("samples of a graph", () => {
  it("stand for their part of the window's time and cores", () => {
    const measure = measureOf("all", { samples: 200, cpu_seconds: 10, cores: 0.5 });
    expect([secondsOf(20, measure), coresOf(20, measure)]).toEqual([1, 0.05]);
    // A type that is no time has a rate, and no seconds.
    const bytes = measureOf("all", { samples: 200, cpu_seconds: null, cores: null, rate: 4_000 });
    expect([secondsOf(20, bytes), coresOf(20, bytes)]).toEqual([0, 400]);
    expect(measureOf("none", { samples: 0, cpu_seconds: 0, cores: 0 }).secondsPerSample).toBe(0);
    expect(secondsOf(20, measureOfPair("both", 50_000_000, "rate"))).toBe(1);
  });
});

describe("a frame in a sentence", () => {
  const sideNames = { names: ["before", "after"], inTurn: true } as const;

  it("has its part of the window, and of what is zoomed", () => {
    const tree = treeOf(answerOf([{ name: "main", self: 10, calls: [{ name: "f", self: 30 }] }]));
    const measure = { ...measureOf("all", { samples: 80, cpu_seconds: 4, cores: 1 }), samples: 80 };
    const whole = { ...measure, unit: SAMPLES, sideNames };
    expect(plain(frameText(tree, 2, ROOT, whole))).toBe("f, native: 30 samples, 37.5 % of the total");
    expect(plain(frameText(tree, 2, 1, whole))).toBe(
      "f, native: 30 samples, 37.5 % of the total, 75.0 % of the zoomed frame",
    );
  });

  it("has both sides of a comparison, and what the change is called", () => {
    const tree = diffTreeOf(diffOf([{ name: "f", before: 10, self: 40 }]), "both");
    const measure = { ...measureOfPair("both", 50_000_000, "absolute"), samples: 40, unit: SAMPLES, sideNames };
    expect(plain(frameText(tree, 1, ROOT, measure))).toMatch(
      /^f: before 10 samples, 10; after 40 samples, 40 samples; /,
    );
  });
});
