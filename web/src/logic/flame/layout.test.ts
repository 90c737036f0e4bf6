import { describe, expect, it } from "vitest";
import { answerOf, type Frame, unevenTree } from "../fixtures.ts";
import { frameName, ROOT, type Tree, treeOf } from "../tree/tree.ts";
import {
  centred,
  hitAt,
  isVisible,
  moved,
  neighbour,
  partOf,
  partText,
  type Run,
  rowRuns,
  rowsInSight,
  scaled,
  viewOf,
} from "./layout.ts";
import { nodeAt } from "./timeline.ts";

const tree = treeOf(
  answerOf([
    {
      name: "a",
      self: 20,
      calls: [
        { name: "b", self: 30 },
        { name: "c", self: 10 },
      ],
    },
    { name: "e", self: 40 },
  ]),
);
const named = (name: string, of: Tree = tree) => [...of.parent.keys()].find((i) => frameName(of, i) === name) as number;
const boxes = (runs: Run[], of: Tree = tree) => runs.map((run) => [frameName(of, run.node), run.left, run.right]);

describe("rowRuns", () => {
  it("lays frames out in proportion, children from their caller's left edge", () => {
    expect(boxes(rowRuns(tree, 0, viewOf(tree, ROOT), 200))).toEqual([["all", 0, 200]]);
    expect(boxes(rowRuns(tree, 1, viewOf(tree, ROOT), 200))).toEqual([
      ["a", 0, 120],
      ["e", 120, 200],
    ]);
    expect(boxes(rowRuns(tree, 2, viewOf(tree, ROOT), 200))).toEqual([
      ["b", 0, 60],
      ["c", 60, 80],
    ]);
  });

  it("zooms: the focused frame and its callers fill the width, others leave", () => {
    const view = viewOf(tree, named("c"));
    expect(boxes(rowRuns(tree, 0, view, 100))).toEqual([["all", 0, 100]]);
    expect(boxes(rowRuns(tree, 1, view, 100))).toEqual([["a", 0, 100]]);
    expect(boxes(rowRuns(tree, 2, view, 100))).toEqual([["c", 0, 100]]);
  });

  it("draws many slivers as runs, covering the same pixels, at a cost bounded by the width", () => {
    const calls: Frame[] = [];
    for (let i = 0; i < 50_000; i++) calls.push({ name: `f${i}`, self: 1 });
    calls.push({ name: "wide", self: 50_000 });
    const many = treeOf(answerOf(calls));
    const runs = rowRuns(many, 1, viewOf(many, ROOT), 1000);
    expect(runs.length).toBeLessThanOrEqual(1000);
    expect(runs[runs.length - 1]).toMatchObject({ left: 501, right: 1000, single: true });
    const drawn = new Set<number>();
    for (const run of runs) for (let x = run.left; x < run.right; x++) drawn.add(x);
    expect(drawn.size).toBe(1000);
  });

  it("keeps a lone sliver visible", () => {
    const lone = treeOf(
      answerOf([
        { name: "big", self: 999_999 },
        { name: "rare", self: 1 },
      ]),
    );
    const runs = rowRuns(lone, 1, viewOf(lone, ROOT), 500);
    const drawn = runs.map((run) => frameName(lone, run.node));
    expect(drawn[0]).toBe("big");
    expect(runs.every((run, i) => i === 0 || run.left >= (runs[i - 1] as Run).right)).toBe(true);
    const alone = treeOf(answerOf([{ name: "parent", self: 999_999, calls: [{ name: "rare", self: 1 }] }]));
    expect(boxes(rowRuns(alone, 2, viewOf(alone, ROOT), 500), alone)).toEqual([["rare", 0, 1]]);
  });

  it("never overlaps and never leaves the canvas, whatever the widths", () => {
    const { tree: uneven } = unevenTree();
    for (const width of [1, 7, 320, 1441]) {
      const runs = rowRuns(uneven, 1, viewOf(uneven, ROOT), width);
      let edge = 0;
      for (const run of runs) {
        expect(run.left).toBeGreaterThanOrEqual(edge);
        expect(run.right).toBeGreaterThan(run.left);
        edge = run.right;
      }
      expect(edge).toBeLessThanOrEqual(width);
    }
  });
});

describe("a part of the width", () => {
  const limits = { from: 10, until: 110 };

  it("is narrowed around what is pointed at, and moved, within the limits", () => {
    const half = scaled(limits, limits, 35, 0.5);
    expect(half).toEqual({ from: 22.5, until: 72.5 });
    expect(scaled(half, limits, 35, 100)).toEqual(limits);
    expect(scaled(limits, limits, 10, 0.5)).toEqual({ from: 10, until: 60 });
    expect(moved(half, limits, 1000)).toEqual({ from: 60, until: 110 });
    expect(moved(half, limits, -1000)).toEqual({ from: 10, until: 60 });
    expect(centred(half, limits, 80)).toEqual({ from: 55, until: 105 });
  });

  it("is written in millionths, empty where it is the whole, and read back", () => {
    expect(partText(limits, limits)).toBe("");
    expect(partText({ from: 22.5, until: 72.5 }, limits)).toBe("125000-625000");
    expect(partOf("125000-625000", limits)).toEqual({ from: 22.5, until: 72.5 });
    expect(partOf("", limits)).toEqual(limits);
    // A tree without a sample has no width.
    expect(partText({ from: 0, until: 0 }, { from: 0, until: 0 })).toBe("");
  });

  it("is another than the whole where the view goes beyond it: a zoom has yet to be drawn", () => {
    for (const before of [
      { from: 0, until: 1000 },
      { from: 10, until: 111 },
      { from: 9, until: 110 },
      { from: 110, until: 210 },
    ])
      expect(partText(before, limits)).not.toBe("");
  });
});

describe("slivers", () => {
  it("are counted also where each pixel has the colour of the one on its edge", () => {
    const calls: Frame[] = [{ name: "wide", self: 4000 }];
    for (let i = 0; i < 4000; i++) calls.push({ name: `f${i}`, self: 1 });
    const dense = treeOf(answerOf(calls));
    for (const width of [1000, 1407]) {
      for (const view of [viewOf(dense, ROOT), { from: 2300.5, until: 7000.25 }]) {
        let seen = 0;
        for (const run of rowRuns(dense, 1, view, width)) {
          const sliver = hitAt(dense, 1, view, width, run.left)?.sliver;
          if (!sliver) continue;
          expect(sliver.samples).toBe(sliver.frames);
          seen += sliver.frames;
        }
        const small = Math.floor(Math.min(view.until, 8000)) - 4000;
        expect(Math.abs(seen - small)).toBeLessThanOrEqual(view.from === 0 ? 0 : 1);
      }
    }
  });

  it("have a pixel between two that are wide", () => {
    const between = treeOf(
      answerOf([
        { name: "a", self: 50_000 },
        { name: "rare", self: 1 },
        { name: "z", self: 50_000 },
      ]),
    );
    const view = viewOf(between, ROOT);
    expect(boxes(rowRuns(between, 1, view, 500), between)).toEqual([
      ["a", 0, 250],
      ["rare", 250, 251],
      ["z", 251, 500],
    ]);
    expect(hitAt(between, 1, view, 500, 250)?.node).toBe(named("rare", between));
  });

  const calls: Frame[] = [{ name: "wide", self: 96_000 }];
  for (let i = 0; i < 4000; i++) calls.push({ name: `f${i}`, self: 1 });
  const many = treeOf(answerOf(calls));

  it("are counted where they are drawn together: of all pixels, every frame and sample once", () => {
    const [view, width] = [viewOf(many, ROOT), 1000];
    const seen = { frames: 0, samples: 0 };
    for (const run of rowRuns(many, 1, view, width)) {
      const hit = hitAt(many, 1, view, width, run.left);
      seen.frames += hit?.sliver?.frames ?? 1;
      seen.samples += hit?.sliver?.samples ?? (many.total[run.node] as number);
    }
    expect(seen).toEqual({ frames: 4001, samples: 100_000 });
    expect(hitAt(many, 1, view, width, 1001)).toBeNull();
  });

  it("share a pixel with a frame of one, or with the end of a wide one, and are counted there", () => {
    const crowd = (first: string) => Array.from({ length: 3 }, (_, i) => ({ name: `${first}${i}`, self: 10 }));
    const row = treeOf(
      answerOf([
        { name: "a", self: 970 },
        ...crowd("f"),
        { name: "one", self: 110 },
        { name: "wide", self: 1860 },
        ...crowd("g"),
      ]),
    );
    const view = viewOf(row, ROOT);
    const width = (row.weight[ROOT] as number) / 100;
    expect(boxes(rowRuns(row, 1, view, width), row)).toEqual([
      ["a", 0, 10],
      ["one", 10, 11],
      ["wide", 11, 29],
      ["g0", 29, 30],
    ]);
    expect(hitAt(row, 1, view, width, 10)).toMatchObject({
      node: named("one", row),
      sliver: { frames: 4, samples: 140 },
    });
    expect(hitAt(row, 1, view, width, 29)).toMatchObject({ sliver: { frames: 3, samples: 30 } });
    expect(hitAt(row, 1, view, width, 28)).toEqual({ node: named("wide", row), sliver: null });
  });

  it("are all counted, whatever the widths of the frames beside them", () => {
    for (const seed of [1, 4]) {
      const { tree: uneven } = unevenTree(seed);
      const [whole, frames] = [viewOf(uneven, ROOT), (uneven.levels[1] as Int32Array).filter((i) => uneven.weight[i])];
      for (const width of [1, 7, 320, 4000]) {
        let seen = 0;
        let samples = 0;
        for (const run of rowRuns(uneven, 1, whole, width)) {
          const hit = hitAt(uneven, 1, whole, width, run.left);
          seen += hit?.sliver?.frames ?? 1;
          samples += hit?.sliver?.samples ?? (uneven.total[hit?.node as number] as number);
        }
        expect([seed, width, seen, samples]).toEqual([seed, width, frames.length, uneven.total[ROOT]]);
      }
    }
  });
});

describe("finding frames", () => {
  it("tells the frame under a position", () => {
    expect(nodeAt(tree, 1, 59.9)).toBe(named("a"));
    expect(nodeAt(tree, 1, 60)).toBe(named("e"));
    expect(nodeAt(tree, 2, 45)).toBeNull();
    expect(nodeAt(tree, 9, 1)).toBeNull();
  });

  it("walks with the keys and stays within what is zoomed", () => {
    const [a, b, c, e] = ["a", "b", "c", "e"].map((name) => named(name)) as [number, number, number, number];
    expect(neighbour(tree, ROOT, "down", ROOT)).toBe(a);
    expect(neighbour(tree, a, "right", ROOT)).toBe(e);
    expect(neighbour(tree, e, "right", ROOT)).toBe(e);
    expect(neighbour(tree, e, "left", ROOT)).toBe(a);
    expect(neighbour(tree, c, "up", ROOT)).toBe(a);
    expect(neighbour(tree, a, "down", ROOT)).toBe(b);
    expect(neighbour(tree, b, "last", a)).toBe(c);
    expect(neighbour(tree, a, "right", a)).toBe(a);
  });

  it("knows how deep a zoomed view reaches and what it shows", () => {
    expect(rowsInSight(tree, ROOT, 1000, 1).last).toBe(2);
    expect(rowsInSight(tree, named("e"), 1000, 1).last).toBe(1);
    expect(isVisible(tree, named("b"), named("a"))).toBe(true);
    expect(isVisible(tree, named("e"), named("a"))).toBe(false);
    expect(isVisible(tree, ROOT, named("a"))).toBe(true);
  });

  it("does not make the graph taller for what is too narrow to be seen", () => {
    const deep = treeOf(
      answerOf([{ name: "top", self: 1_000_000, calls: [{ name: "x", calls: [{ name: "y", self: 1 }] }] }]),
    );
    expect(rowsInSight(deep, ROOT, 1000, 0.3)).toEqual({ first: 0, last: 1, thin: 2 });
    expect(rowsInSight(deep, named("x", deep), 1000, 0.3).last).toBe(3);
  });
});
