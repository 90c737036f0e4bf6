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
    const [down, up] = [true, false].map((way) => sortFunctions(rows, "name", way).map((r) => `${r.name} ${r.total}`));
    expect(up).toEqual(["f 14", "f 6", "g 7", "main 10"]);
    expect(down).toEqual(["main 10", "g 7", "f 14", "f 6"]);
    expect(sortFunctions(rows, "total", false).map((r) => r.total)).toEqual([6, 7, 10, 14]);
  });

  it("puts what is alike in the order of names", () => {
    const alike = treeOf(answerOf(["c", "a", "b"].map((name) => ({ name, self: name === "a" ? 2 : 1 }))));
    const rows = functionsOf(alike, ROOT);
    expect(sortFunctions(rows, "self", true).map((r) => r.name)).toEqual(["a", "b", "c"]);
    expect(sortFunctions(rows, "self", false).map((r) => r.name)).toEqual(["b", "c", "a"]);
    expect(sortFunctions(rows, "name", true).map((r) => r.name)).toEqual(["c", "b", "a"]);
  });

  it("numbers a tree's functions once, whatever is zoomed", () => {
    let read = 0;
    const counted = {
      ...tree,
      get name() {
        read++;
        return tree.name;
      },
    };
    functionsOf(counted, ROOT);
    const [first, rows] = [read, functionsOf(counted, ROOT).length];
    // The second time for each row alone.
    expect(read - first).toBeLessThanOrEqual(2 * rows);
    expect(first).toBeGreaterThan(read - first);
  });
});
