import { describe, expect, it } from "vitest";
import type { SeriesAnswer } from "../../api/types.ts";
import { closerRange, versionLines } from "./versionHistory.ts";

const answer = (covered: number[], series: SeriesAnswer["series"]): SeriesAnswer => ({
  ...{ from: 0, until: covered.length * 10, step_ms: 10, by: "version", unit: "cores", covered, series, other: null },
  ...{ times: covered.map((_, i) => i * 10), idle: [], capacity: [] },
});
const line = (value: string, cores: (number | null)[]) => ({ value, cores, samples: 5, cpu_seconds: 1 });

describe("a function's course by version", () => {
  it("is asked for again where most of the range lies before its first sample", () => {
    expect(closerRange(answer([1, 1, 1, 1], [line("1", [null, 0, 0, 2])]))).toEqual({ from: 30, until: 40 });
    expect(closerRange(answer([1, 1, 1, 1], [line("1", [0, 1, 0, 0])]))).toBeNull();
    expect(closerRange(answer([0, 0], []))).toBeNull();
  });

  it("has a line for each version, in the order in which they came", () => {
    const lines = versionLines(
      answer([1, 1, 1, 1], [line("2", [0, 0, 4, 4]), line("1", [1, 3, 0, null]), line("x", [0])]),
    );
    expect(lines.map(({ version, mean, first, last }) => [version, mean, first, last])).toEqual([
      ["1", 2, 0, 20],
      ["2", 4, 20, 40],
    ]);
  });
});
