import { describe, expect, it } from "vitest";
import { seriesOf } from "../fixtures.ts";
import { firstSeen } from "./firstSeen.ts";
import { stackOf } from "./stack.ts";

const line = (value: string, cores: (number | null)[]) => ({ value, cores, samples: 1, cpu_seconds: 1 });
const since = (covered: number[], ...lines: (number | null)[][]) =>
  firstSeen(stackOf(seriesOf({ covered, series: lines.map((cores, i) => line(String(i), cores)) })));

describe("since when", () => {
  it("is the first step with anything of any line", () => {
    expect(since([1, 1, 1], [0, 0, 2], [0, 0.5, 0])).toEqual({
      first: 10_000,
      isEarlier: false,
      peak: 2,
      peakAt: 20_000,
    });
  });

  it("may lie before what was watched", () => {
    expect(since([0, 1, 1], [null, 1, 1])).toMatchObject({ first: 10_000, isEarlier: true });
    expect(since([1, 0, 1], [1, null, 2])).toMatchObject({ first: 0, isEarlier: true });
    expect(since([1, 0, 1], [0, null, 2])).toMatchObject({ first: 20_000, isEarlier: false, peakAt: 20_000 });
  });

  it("is not known where there is nothing", () => {
    expect(since([1, 1, 1], [0, 0, 0])).toMatchObject({ first: null, isEarlier: false });
    expect(since([0, 0, 0])).toMatchObject({ first: null, isEarlier: false });
  });
});
