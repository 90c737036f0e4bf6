import { describe, expect, it } from "vitest";
import { answerOf, type Frame } from "./fixtures.ts";
import { MOST_SIBLINGS, openedWith, outline } from "./outline.ts";
import { frameName, ROOT, treeOf } from "./tree.ts";

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
});
