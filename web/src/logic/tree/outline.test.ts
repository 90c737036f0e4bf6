import { describe, expect, it } from "vitest";
import { answerOf, type Frame } from "../fixtures.ts";
import { MOST_OPEN, MOST_SIBLINGS, openedWith, openOf, openText, outline } from "./outline.ts";
import { frameName, ROOT, type Tree, treeOf } from "./tree.ts";

const tree = treeOf(
  answerOf([
    { name: "small", self: 1 },
    { name: "large", self: 2, calls: [{ name: "way", calls: [{ name: "end", self: 7 }] }] },
  ]),
);
const shown = (open: number[]) =>
  outline(tree, ROOT, new Set(open)).map(({ node, level, state }) => `${level} ${frameName(tree, node)} ${state}`);

describe("the outline of a tree", () => {
  it("shows what is open, the largest first", () => {
    expect(shown([])).toEqual(["1 all closed"]);
    expect(shown([ROOT])).toEqual(["1 all open", "2 large closed", "2 small leaf"]);
    const large = [...tree.parent.keys()].find((i) => frameName(tree, i) === "large") as number;
    expect(openedWith(tree, large)).toHaveLength(3);
    expect(shown([ROOT, ...openedWith(tree, large)]).slice(1, 4)).toEqual(["2 large open", "3 way open", "4 end leaf"]);
  });

  it("counts the siblings that it does not show", () => {
    const calls: Frame[] = Array.from({ length: MOST_SIBLINGS + 20 }, (_, i) => ({ name: `f${i}`, self: i + 1 }));
    const many = treeOf(answerOf(calls));
    const rows = outline(many, ROOT, new Set([ROOT]));
    expect(rows).toHaveLength(MOST_SIBLINGS + 2);
    expect(rows[rows.length - 1]).toMatchObject({ rest: 20, samples: 210, place: 101, siblings: 101 });
    expect(rows.slice(1).reduce((sum, { samples }) => sum + samples, 0)).toBe(many.total[ROOT]);
  });

  it("is the same again from its text, in another tree with the same ways too", () => {
    const named = (of: Tree, name: string) => [...of.parent.keys()].find((i) => frameName(of, i) === name) as number;
    const large = named(tree, "large");
    expect(openText(tree, ROOT, openOf(tree, ROOT, ""))).toBe("");
    expect([...openOf(tree, ROOT, openText(tree, ROOT, new Set()))]).toEqual([]);
    const open = new Set([ROOT, large, named(tree, "way")]);
    const text = openText(tree, ROOT, open);
    expect(openOf(tree, ROOT, text)).toEqual(open);
    // What stands below a closed row is forgotten.
    expect(openOf(tree, ROOT, openText(tree, ROOT, new Set([ROOT, named(tree, "way")])))).toEqual(new Set([ROOT]));
    // A tree that begins elsewhere has the ways from the root all the same.
    expect(openOf(tree, large, text)).toEqual(new Set([large, named(tree, "way")]));
    const later = treeOf(
      answerOf([
        { name: "first", self: 1, calls: [{ name: "way", calls: [{ name: "end", self: 1 }] }] },
        { name: "large", calls: [{ name: "way", calls: [{ name: "end", self: 1 }] }] },
      ]),
    );
    const again = openOf(later, ROOT, text);
    expect([...again].map((node) => frameName(later, node))).toEqual(["all", "large", "way"]);
    expect(again.has(named(later, "way"))).toBe(false);
    expect(openOf(later, ROOT, "no.such.rows")).toEqual(new Set());
  });

  it("writes no more rows than an address holds, those nearest to the beginning", () => {
    const deep = Array.from({ length: MOST_OPEN + 100 }).reduce<Frame>((calls) => ({ name: "f", calls: [calls] }), {
      name: "f",
      self: 1,
    });
    const ways = treeOf(answerOf([deep]));
    const text = openText(ways, ROOT, new Set(ways.parent.keys()));
    expect(text.length).toBeLessThan(MOST_OPEN * 8);
    expect(Math.max(...openOf(ways, ROOT, text))).toBe(MOST_OPEN - 1);
  });
});
