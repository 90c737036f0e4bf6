import { describe, expect, it } from "vitest";
import { seriesOf } from "../fixtures.ts";
import { axisTop, heightsOf, layerAt, meanWithin, stackOf, stepAt, topOf } from "./stack.ts";

const line = (value: string, cores: (number | null)[]) => ({ value, cores, samples: 1, cpu_seconds: 1 });

describe("stack", () => {
  it("adds layers up from the bottom", () => {
    const stack = stackOf(
      seriesOf({
        series: [line("a", [1, 2, 3]), line("b", [1, 1, 1])],
        other: { series: 4, cores: [0.5, 0, 0], samples: 2, cpu_seconds: 0.1 },
      }),
    );
    expect(stack.edges).toEqual([0, 10_000, 20_000, 30_000]);
    expect(stack.layers.map((layer) => layer.top)).toEqual([
      [1, 2, 3],
      [2, 3, 4],
      [2.5, 3, 4],
    ]);
    expect(stack.layers.map((layer) => layer.value)).toEqual(["a", "b", null]);
    expect(stack.total).toEqual([2.5, 3, 4]);
    expect(stack.peak).toBe(4);
    expect(stack.meanIdle).toBe(1);
  });

  it("keeps uncovered time apart from idle time", () => {
    const stack = stackOf(seriesOf({ covered: [1, 0, 0.5], series: [line("a", [2, null, null])] }));
    expect(stack.total).toEqual([2, null, 0]);
    expect(stack.uncovered).toEqual([{ from: 10_000, until: 20_000 }]);
    expect(stack.partly).toEqual([{ from: 20_000, until: 30_000 }]);
    expect(stack.meanTotal).toBeCloseTo(2 / 1.5);
    expect(stack.layers[0]?.top).toEqual([2, null, 0]);
  });

  it("takes each value apart into user and system time, and leaves the others whole", () => {
    const all = seriesOf({
      series: [line("a", [1, 2, null]), line("b", [1, 1, 1])],
      other: { series: 4, cores: [0.5, 0, 0], samples: 2, cpu_seconds: 0.1 },
    });
    const kernel = seriesOf({ series: [{ value: "a", cores: [0.25, 2.1, null], samples: 1, cpu_seconds: 0.75 }] });
    const { layers, total } = stackOf(all, kernel);
    expect(layers.map(({ value, mode, cores }) => [value, mode, cores])).toEqual([
      ["a", "user", [0.75, 0, null]],
      ["a", "kernel", [0.25, 2.1, null]],
      ["b", "user", [1, 1, 1]],
      ["b", "kernel", [0, 0, 0]],
      [null, null, [0.5, 0, 0]],
    ]);
    expect((layers[0]?.amount ?? 0) / 1e9).toBeCloseTo(0.25);
    expect(total[0]).toBeCloseTo(2.5);
    const elsewhere = stackOf(all, { ...kernel, times: [5_000, 15_000, 25_000] });
    expect(elsewhere.layers.map((layer) => layer.mode)).toEqual([null, null, null]);
  });

  it("draws lines from the ground, and finds the one that is near", () => {
    const stack = stackOf(
      seriesOf({ covered: [1, 1, 0], series: [line("a", [1, 4, null]), line("b", [2, null, null])] }),
    );
    expect(heightsOf(stack, "lines")).toEqual([
      [1, 4, null],
      [2, 0, null],
    ]);
    expect(axisTop(stack, false, "lines")).toBeCloseTo(4 * 1.06);
    expect(layerAt(stack, 0, 1.9, "lines", 0.2)).toBe(1);
    expect(layerAt(stack, 0, 1.5, "lines", 0.2)).toBe(-1);
    expect(layerAt(stack, -1, 1, "lines", 9)).toBe(-1);
  });

  it("draws every covered step from its edge to the next one, and leaves gaps", () => {
    const stack = stackOf(seriesOf({ covered: [1, 0, 1], series: [line("a", [2, null, 4]), line("b", [1, null, 1])] }));
    expect(stack.edges).toEqual([0, 10_000, 20_000, 30_000]);
    expect(heightsOf(stack, "stacked")).toEqual([
      [2, null, 4],
      [3, null, 5],
    ]);
  });

  it("counts a step in a mean by the time that was observed, so that means agree with shares", () => {
    const stack = stackOf(
      seriesOf({
        covered: [1, 0.5, 0],
        series: [
          { value: "a", cores: [3, 0, null], samples: 600, cpu_seconds: 30 },
          { value: "b", cores: [0, 2, null], samples: 200, cpu_seconds: 10 },
        ],
      }),
    );
    expect(stack.layers.map((layer) => layer.mean)).toEqual([2, 10 / 15]);
    expect(stack.layers.map((layer) => layer.share)).toEqual([0.75, 0.25]);
    expect(stack.meanTotal).toBeCloseTo(40 / 15);
    expect(meanWithin(stack, { from: 5_000, until: 20_000 })).toBeCloseTo((3 * 5 + 2 * 5) / 10);
  });

  it("does not let a moment at the edge of what was watched set the axis", () => {
    const edge = stackOf(seriesOf({ covered: [1, 1, 0.1], series: [line("a", [2, 1, 7])] }));
    expect(edge.peak).toBe(2);
    const short = stackOf(seriesOf({ covered: [0, 0.3, 0], series: [line("a", [null, 1, null])] }));
    expect(short.peak).toBe(1);
  });

  it("takes steps as whole where nobody accounts for them", () => {
    const stack = stackOf(seriesOf({ covered: [0, 0, 0], series: [line("a", [1, 2, 3])] }));
    expect(stack.meanTotal).toBe(2);
  });

  it("marks steps in which a node was missing, though others were covered", () => {
    const stack = stackOf(seriesOf({ covered_by_node: [1, 0.5, 0.5], series: [line("a", [2, 1, 1])] }));
    expect(stack.partly).toEqual([{ from: 10_000, until: 30_000 }]);
    expect(stack.meanTotal).toBeCloseTo(4 / 3);
  });

  it("joins neighbouring uncovered steps", () => {
    const stack = stackOf(seriesOf({ covered: [0, 0, 1] }));
    expect(stack.uncovered).toEqual([{ from: 0, until: 20_000 }]);
  });

  it("finds the step of a moment and the mean of a window", () => {
    const stack = stackOf(seriesOf({ covered: [1, 0, 1], series: [line("a", [2, null, 4])] }));
    expect([-1, 0, 9_999, 10_000, 29_999, 30_000].map((t) => stepAt(stack.edges, t))).toEqual([-1, 0, 0, 1, 2, -1]);
    expect(stepAt([], 5)).toBe(-1);
    expect(meanWithin(stack, { from: 5_000, until: 25_000 })).toBe(3);
    expect(meanWithin(stack, { from: 12_000, until: 13_000 })).toBeNull();
  });

  it("tells the layer at a height", () => {
    const stack = stackOf(seriesOf({ series: [line("a", [1, 2, 0]), line("b", [1, 1, 1])] }));
    expect([0, 0.9, 1, 1.9, 2].map((cores) => layerAt(stack, 0, cores))).toEqual([0, 0, 1, 1, -1]);
    expect(layerAt(stack, 2, 0.5)).toBe(1);
  });

  it("leaves room above the peak and shows the capacity on request", () => {
    const stack = stackOf(seriesOf({ series: [line("a", [1, 2, 1])] }));
    expect(axisTop(stack, false)).toBeCloseTo(2.12);
    expect(axisTop(stack, true)).toBeCloseTo(4.24);
    expect(axisTop(stackOf(seriesOf({})), false)).toBe(1);
    const higher = stackOf(seriesOf({ series: [line("a", [1, 3, 1]), line("b", [1, 3, 1])] }));
    expect(topOf(stack, higher, false, "lines")).toBeCloseTo(6.36);
    expect(topOf(higher, stack, false, "stacked")).toBeCloseTo(6.36);
    expect(topOf(stack, stackOf(seriesOf({})), false, "stacked")).toBeCloseTo(2.12);
  });
});

describe("a step of the chart", () => {
  it("that was watched for less than half of it is left out, and still counts in the mean", () => {
    const stack = stackOf(seriesOf({ covered: [1, 1, 0.075], capacity: [2, 2, 2], series: [line("a", [1, 1, 2.13])] }));
    expect(stack.total).toEqual([1, 1, null]);
    expect(stack.layers[0]?.top).toEqual([1, 1, null]);
    expect(stack.layers[0]?.cores).toEqual([1, 1, null]);
    expect(stack.peak).toBe(1);
    expect(stack.partly).toEqual([{ from: 20_000, until: 30_000 }]);
    expect(stack.meanTotal).toBeCloseTo((1 + 1 + 2.13 * 0.075) / 2.075);
    // Where no step was watched for longer, these are all there is.
    const short = stackOf(seriesOf({ covered: [0.1, 0.2, 0], series: [line("a", [1, 2, null])] }));
    expect(short.total).toEqual([1, 2, null]);
  });

  it("is never above what its CPUs can be by the phase of ticks, and above it where another sender's is added", () => {
    // A sample stands for 50 ms: two more a CPU fit into ten seconds, and come to 2.02.
    const ofTicks = { samples: 1200, cpu_seconds: 60 };
    const chart = (cores: number[]) =>
      stackOf(
        seriesOf({
          capacity: [2, 2, 2],
          series: [
            { value: "a", cores: cores.map((value) => value * 0.75), ...ofTicks },
            { value: "b", cores: cores.map((value) => value * 0.25), ...ofTicks },
          ],
        }),
      );
    const stack = chart([2.015, 1.99, 3]);
    expect(stack.total).toEqual([2, 1.99, 3]);
    expect(stack.layers[0]?.top[0]).toBeCloseTo(1.5);
    expect(stack.layers[0]?.cores[0]).toBeCloseTo(1.5);
    expect(stack.layers[1]?.top[0]).toBe(2);
  });
});
