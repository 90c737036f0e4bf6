import { describe, expect, it } from "vitest";
import { seriesOf } from "./fixtures.ts";
import { sparkOf, sparkPath } from "./since.ts";

const line = (value: string, cores: (number | null)[]) => ({ value, cores, samples: 1, cpu_seconds: 1 });

describe("a small chart", () => {
  it("adds lines up, and says since when there is anything", () => {
    const spark = sparkOf(seriesOf({ series: [line("user", [0, 1, 2]), line("kernel", [0, 0.5, null])] }));
    expect(spark).toMatchObject({ values: [0, 1.5, 2], peak: 2, peakAt: 20_000, since: 10_000 });
    expect(sparkPath(spark, 30, 11)).toBe("M0.0 11V11.0H10.0V3.5H20.0V1.0H30.0V11Z");
  });

  it("leaves a gap where nobody watched", () => {
    const spark = sparkOf(seriesOf({ covered: [1, 0, 1], series: [line("user", [1, null, 1])] }));
    expect(spark.values).toEqual([1, null, 1]);
    expect(sparkPath(spark, 30, 11).match(/Z/g)).toHaveLength(2);
    expect(sparkPath(sparkOf(seriesOf({})), 30, 11)).toBe("");
  });
});
