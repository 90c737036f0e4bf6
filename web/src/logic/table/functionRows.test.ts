import { describe, expect, it } from "vitest";
import { answerOf } from "../fixtures.ts";
import { ROOT, treeOf } from "../tree/tree.ts";
import { functionsOf, sortFunctions } from "./functionRows.ts";

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
