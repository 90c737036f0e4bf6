import { describe, expect, it } from "vitest";
import type { TopRow } from "../../api/types.ts";
import { spentSides } from "./spentSides.ts";

/** A sample is a hundredth of a core here. */
const side = (values: Record<string, number>, complete = true, others = 0) => ({
  rows: Object.entries(values).map(
    ([name, total]) => ({ name, total, cores: total / 100, cpu_seconds: total / 20 }) as TopRow,
  ),
  samples: Object.values(values).reduce((sum, total) => sum + total, others),
  complete,
});

describe("whose time a frame is on both sides", () => {
  it("has each value once, with both levels and the change, the largest first", () => {
    const { rows, rest } = spentSides(side({ api: 30, cron: 10 }), side({ api: 20, web: 60 }), 9);
    expect(rows.map(({ name, before, after }) => [name, before?.level, after?.level])).toEqual([
      ["web", 0, 0.6],
      ["api", 0.3, 0.2],
      ["cron", 0.1, 0],
    ]);
    expect(rows.map(({ delta }) => delta)).toEqual([0.6, expect.closeTo(-0.1), -0.1]);
    expect(rows[1]).toMatchObject({ before: { share: 0.75 }, after: { share: 0.25 } });
    expect(rest).toEqual([0, 0]);
    // Enough to tell it in another unit.
    expect(rows.map(({ before, after }) => [before?.samples, after?.seconds])).toEqual([
      [0, 3],
      [30, 1],
      [10, 0],
    ]);
  });

  it("tells nothing of a value at which a list ended before", () => {
    const { rows, rest } = spentSides(side({ api: 30 }, false, 70), side({ api: 10, web: 40 }), 9);
    expect(rows[0]).toMatchObject({ name: "web", before: null, delta: null });
    expect(rows[1]?.delta).toBeCloseTo(-0.2);
    expect(rest[0]).toBeCloseTo(0.7);
  });

  it("leaves smaller values in the rest, and stands a side without samples", () => {
    const { rows, rest } = spentSides(side({}), side({ a: 50, b: 30, c: 20 }), 2);
    expect(rows.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(rest).toEqual([0, expect.closeTo(0.2)]);
    expect(rows[0]).toMatchObject({ before: { level: 0, share: 0 } });
  });
});
