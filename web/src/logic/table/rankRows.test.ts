import { describe, expect, it } from "vitest";
import { RANK_KEYS, rankAmount, rankShare, sortRanks } from "./rankRows.ts";

describe("values of a label", () => {
  it("are ranked by all their time, or by what the kernel spent for them", () => {
    const rows = [
      { name: "a", total: 10, cpu_seconds: 1, user_share: 1 },
      { name: "b", total: 8, cpu_seconds: 0.8, user_share: 0.25 },
      { name: "c", total: 9, cpu_seconds: 0.9, user_share: 0.5 },
    ];
    expect(sortRanks(rows, "total", true).map((r) => r.name)).toEqual(["a", "c", "b"]);
    expect(sortRanks(rows, "kernel", true).map((r) => r.name)).toEqual(["b", "c", "a"]);
    expect(sortRanks(rows, "name", false).map((r) => r.name)).toEqual(["a", "b", "c"]);
  });

  it("are ranked by how much of their time has cut or unnamed stacks, and unknown shares stay unknown", () => {
    const rows = [
      { name: "small", total: 2, cpu_seconds: 0.2, truncated_share: 1, unnamed_share: 0 },
      { name: "large", total: 100, cpu_seconds: 10, truncated_share: 0.1, unnamed_share: 0.5 },
      { name: "unknown", total: 50, cpu_seconds: 5, truncated_share: null, unnamed_share: null },
    ];
    expect(sortRanks(rows, "cut", true).map((r) => r.name)).toEqual(["large", "small", "unknown"]);
    expect(sortRanks(rows, "unnamed", true).map((r) => r.name)).toEqual(["large", "unknown", "small"]);
    expect(rows.map((row) => rankAmount(row, "cut"))).toEqual([2, 10, null]);
    expect(rows.map((row) => rankShare(row, "cut"))).toEqual([1, 0.1, null]);
    expect(rankShare({ name: "", total: 1, cpu_seconds: 1, user_share: 0.25 }, "kernel")).toBe(0.75);
  });

  it("are sorted by what a column shows, in both directions", () => {
    const rows = Array.from({ length: 30 }, (_, i) => ({
      name: `value ${i}`,
      total: (i * 37) % 101,
      cpu_seconds: 1,
      user_share: ((i * 53) % 97) / 97,
      truncated_share: ((i * 31) % 89) / 89,
      unnamed_share: ((i * 71) % 83) / 83,
    }));
    for (const key of RANK_KEYS) {
      if (key === "name") continue;
      const shown = (descending: boolean) => sortRanks(rows, key, descending).map((row) => rankAmount(row, key) ?? 0);
      expect(shown(true)).toEqual(shown(true).toSorted((a, b) => b - a));
      expect(shown(false)).toEqual(shown(false).toSorted((a, b) => a - b));
    }
  });
});
