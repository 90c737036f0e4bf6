import { describe, expect, it } from "vitest";
import { answerOf, diffOf } from "../fixtures.ts";
import { ancestors, BadTree, diffTreeOf, frameName, treeOf } from "./tree.ts";

const answer = answerOf([
  {
    name: "a",
    self: 1,
    calls: [
      { name: "b", self: 2 },
      { name: "c", calls: [{ name: "d", self: 4 }] },
    ],
  },
  { name: "e", self: 8 },
]);

describe("tree", () => {
  it("knows depth, subtree ends and left edges", () => {
    const tree = treeOf(answer);
    expect([...tree.depth]).toEqual([0, 1, 2, 2, 3, 1]);
    expect([...tree.end]).toEqual([6, 5, 3, 5, 5, 6]);
    expect([...tree.start]).toEqual([0, 0, 0, 2, 2, 7]);
    expect([...tree.weight]).toEqual([15, 7, 2, 4, 4, 8]);
    expect(tree.levels.map((level) => [...level])).toEqual([[0], [1, 5], [2, 3], [4]]);
  });

  it("names the way to a frame", () => {
    const tree = treeOf(answer);
    expect(ancestors(tree, 4).map((i) => frameName(tree, i))).toEqual(["a", "c", "d"]);
    expect(ancestors(tree, 0)).toEqual([]);
  });

  it("gives a difference the width of both sides or of one", () => {
    const diff = diffOf([
      { name: "stays", self: 5, before: 5 },
      { name: "vanished", self: 0, before: 3 },
      { name: "came", self: 7, before: 0 },
    ]);
    expect([...diffTreeOf(diff, "both").weight]).toEqual([20, 10, 3, 7]);
    expect([...diffTreeOf(diff, "before").weight]).toEqual([8, 5, 3, 0]);
    expect([...diffTreeOf(diff, "after").weight]).toEqual([12, 5, 0, 7]);
  });

  it("refuses columns that contradict each other", () => {
    const short = structuredClone(answer);
    short.nodes.self.pop();
    expect(() => treeOf(short)).toThrow(BadTree);
    const outside = structuredClone(answer);
    outside.nodes.name[2] = 99;
    expect(() => treeOf(outside)).toThrow(/name points at 99/);
    const backwards = structuredClone(answer);
    backwards.nodes.parent[2] = 4;
    expect(() => treeOf(backwards)).toThrow(/before its parent/);
    expect(() => treeOf({ ...answer, nodes: { ...answer.nodes, parent: [] } })).toThrow(/no root/);
  });
});
