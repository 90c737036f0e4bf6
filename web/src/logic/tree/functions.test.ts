import { describe, expect, it } from "vitest";
import type { DiffTopRow } from "../../api/types.ts";
import { answerOf } from "../fixtures.ts";
import { diffRows } from "../table/diffRows.ts";
import { functionsOf, rankShare, sortFunctions, sortRanks } from "./functions.ts";
import { ROOT, treeOf } from "./tree.ts";

const tree = treeOf(
  answerOf([
    {
      name: "main",
      self: 1,
      calls: [{ name: "f", self: 2, calls: [{ name: "g", self: 3, calls: [{ name: "f", self: 4 }] }] }],
    },
    { name: "f", self: 5 },
    { name: "f", module: "other.so", self: 6 },
  ]),
);

describe("functions", () => {
  it("sums self, and total without counting a recursion twice", () => {
    const rows = functionsOf(tree, ROOT);
    const row = (name: string, module = "") => rows.find((r) => r.name === name && r.module === module);
    expect(row("f")).toMatchObject({ self: 11, total: 9 + 5 });
    expect(row("g")).toMatchObject({ self: 3, total: 7 });
    expect(row("f", "other.so")).toMatchObject({ self: 6, total: 6 });
    expect(rows.reduce((sum, r) => sum + r.self, 0)).toBe(21);
  });

  it("is limited to the zoomed frame", () => {
    expect(functionsOf(tree, 3).map((r) => [r.name, r.self, r.total])).toEqual([
      ["g", 3, 7],
      ["f", 4, 4],
    ]);
  });

  it("sorts by any column, ties by total", () => {
    const rows = functionsOf(tree, ROOT);
    expect(sortFunctions(rows, "self", true).map((r) => r.self)).toEqual([11, 6, 3, 1]);
    expect(sortFunctions(rows, "name", false).map((r) => r.name)).toEqual(["f", "f", "g", "main"]);
  });
});

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
    expect(rows.map((row) => rankShare(row, "cut"))).toEqual([1, 0.1, null]);
    expect(rankShare({ name: "", total: 1, cpu_seconds: 1, user_share: 0.25 }, "kernel")).toBe(0.75);
  });
});

describe("functions of a difference", () => {
  const row = (name: string, base_norm: number, norm: number, state: string) =>
    ({ name, base_norm, norm, delta: norm - base_norm, state }) as DiffTopRow;
  const rows = [
    row("same", 5, 9.1, "same"),
    row("grew", 1, 3, "grew"),
    row("gone", 4, 0, "gone"),
    row("new", 0, 1, "new"),
  ];

  it("ranks changes by size, whatever their direction", () => {
    expect(diffRows(rows, "delta", true, "", null).map((r) => r.name)).toEqual(["gone", "grew", "new", "same"]);
    expect(diffRows(rows, "factor", true, "", null).map((r) => r.name)).toEqual(["new", "grew", "same", "gone"]);
  });

  it("leaves out what is not shown to differ, and what does not match", () => {
    expect(diffRows(rows, "before", true, "significant", null).map((r) => r.name)).toEqual(["gone", "grew", "new"]);
    expect(diffRows(rows, "name", true, "gone", null).map((r) => r.name)).toEqual(["gone"]);
    expect(diffRows(rows, "name", false, "", (name) => name.startsWith("g")).map((r) => r.name)).toEqual([
      "gone",
      "grew",
    ]);
  });
});
