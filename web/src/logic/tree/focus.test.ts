import { describe, expect, it } from "vitest";
import { answerOf, type Frame } from "../fixtures.ts";
import { findFocus, findSelection, focusOf, selectionOf, splitPath } from "./focus.ts";
import { frameName, ROOT, treeOf } from "./tree.ts";

describe("focus", () => {
  const tree = treeOf(
    answerOf([
      {
        name: "main",
        calls: [
          { name: "odd;name\\", self: 3, calls: [{ name: "leaf", self: 1 }] },
          { name: "leaf", self: 9 },
        ],
      },
    ]),
  );

  it("goes from every frame to text and back", () => {
    for (let i = 0; i < tree.size; i++) expect(findFocus(tree, focusOf(tree, i))).toBe(i);
    expect(splitPath("main;odd\\;name\\\\;leaf")).toEqual(["main", "odd;name\\", "leaf"]);
  });

  it("tells a selected root from no selection", () => {
    for (const node of [null, ROOT, 1, 3]) expect(findSelection(tree, selectionOf(tree, node))).toBe(node);
    expect(selectionOf(tree, null)).toBe("");
    expect(findSelection(tree, "gone")).toBeNull();
  });

  it("takes a bare name as the largest frame of that name", () => {
    const node = findFocus(tree, "leaf") as number;
    expect(tree.total[node]).toBe(9);
    expect(findFocus(tree, "odd;name\\")).toBe(2);
  });

  it("says when the tree has no such frame", () => {
    expect(findFocus(tree, "main;gone")).toBeNull();
    expect(findFocus(tree, "#zzz")).toBeNull();
    expect(findFocus(tree, "")).toBe(ROOT);
  });

  it("finds the right sibling among equal names of different modules", () => {
    const twins = treeOf(
      answerOf([
        { name: "f", module: "a.so", self: 5, calls: [{ name: "x", self: 1 }] },
        { name: "f", module: "b.so", self: 1, calls: [{ name: "y", self: 1 }] },
      ]),
    );
    const y = findFocus(twins, "f;y") as number;
    expect(frameName(twins, y)).toBe("y");
  });

  it("shortens very deep paths to a hash that still finds them", () => {
    let frame: Frame = { name: "leaf", self: 1 };
    for (let i = 0; i < 100; i++) frame = { name: `some::rather::long::name_${i}`, calls: [frame] };
    const deep = treeOf(answerOf([frame]));
    const text = focusOf(deep, deep.size - 1);
    expect(text.length).toBeLessThan(20);
    expect(findFocus(deep, text)).toBe(deep.size - 1);
  });
});
