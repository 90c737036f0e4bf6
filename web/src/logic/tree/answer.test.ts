import { describe, expect, it } from "vitest";
import { answerOf, diffOf, type Frame } from "../fixtures.ts";
import { buffersOf, parseAnswer } from "./answer.ts";
import { diffTreeOf, type Tree, treeOf, withWidth } from "./tree.ts";

const FRAMES: Frame[] = [
  { name: "main", calls: [{ name: "read", self: 3, before: 1, calls: [{ name: "copy", self: 2, before: 4 }] }] },
];

describe("an answer with its tree", () => {
  it("has everything but the columns that the tree was made of", () => {
    const answer = answerOf(FRAMES);
    const { tree, fault, ...rest } = parseAnswer("flamegraph", JSON.stringify(answer));
    expect(tree).toEqual(treeOf(answer));
    expect(fault).toBe("");
    const { strings, kinds, languages, nodes, ...figures } = answer;
    expect(rest).toEqual(figures);
    expect([strings, kinds, languages, nodes].every(Boolean)).toBe(true);
    expect(parseAnswer("diff", JSON.stringify(diffOf(FRAMES))).tree).toEqual(diffTreeOf(diffOf(FRAMES), "both"));
  });

  it("says what is wrong with a tree, and throws what is no JSON", () => {
    const answer = answerOf(FRAMES);
    answer.nodes.name[1] = 99;
    expect(parseAnswer("flamegraph", JSON.stringify(answer))).toMatchObject({
      tree: null,
      fault: expect.stringContaining("99"),
    });
    expect(() => parseAnswer("flamegraph", "<html>")).toThrow(SyntaxError);
  });

  it("goes from thread to thread without a copy, whole", () => {
    for (const kind of ["flamegraph", "diff"] as const) {
      const make = () =>
        parseAnswer(kind, JSON.stringify(kind === "diff" ? diffOf(FRAMES) : answerOf(FRAMES))).tree as Tree;
      const tree = make();
      const transfer = buffersOf(tree) as ArrayBuffer[];
      expect(structuredClone(tree, { transfer })).toEqual(make());
      expect(transfer.every(({ byteLength }) => byteLength === 0)).toBe(true);
      expect(tree.levels.every(({ length }) => length === 0)).toBe(true);
    }
  });

  it("gets other widths as if it had been made with them", () => {
    const tree = diffTreeOf(diffOf(FRAMES), "both");
    for (const width of ["both", "before", "after"] as const)
      expect(withWidth(tree, width)).toEqual(diffTreeOf(diffOf(FRAMES), width));
    expect(withWidth(tree, "both")).toBe(tree);
    // What does not depend on widths is the same, and not made again.
    const after = withWidth(tree, "after");
    expect(after.levels).toBe(tree.levels);
    expect(after.depth).toBe(tree.depth);
    expect(after.end).toBe(tree.end);
  });
});
