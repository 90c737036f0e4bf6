import { describe, expect, it } from "vitest";
import { answerOf, diffOf, unevenTree } from "../fixtures.ts";
import { diffTreeOf, ROOT, type Tree, treeOf } from "../tree/tree.ts";
import { cellsOf, hitPixels, Runs } from "./cells.ts";
import { rowRuns, viewOf } from "./layout.ts";
import { type HitRows, rowsOf } from "./search.ts";

/** The pixels of row 1 that matches lie on: by cells, and from hit to hit. */
function marked(tree: Tree, flags: Uint8Array, view = viewOf(tree, ROOT), width = 1000): Uint8Array {
  const paint = (few: HitRows | null) => {
    const pixels = new Uint8Array(width);
    let edge = 0;
    const cells = () => cellsOf(tree, 1, view, width);
    const hits = { has: (node: number) => flags[node] === 1 };
    hitPixels(tree, 1, view, width, { hits, few }, cells, (left, right) => {
      expect(right).toBeGreaterThan(left);
      expect(left).toBeGreaterThanOrEqual(edge - 1);
      edge = left;
      pixels.fill(1, left, right);
    });
    return pixels;
  };
  const pixels = paint(null);
  const nodes = Int32Array.from(flags.keys()).filter((node) => flags[node] === 1);
  expect(paint(rowsOf(tree, nodes))).toEqual(pixels);
  return pixels;
}

describe("hitPixels", () => {
  it("tells the pixels of the frames that match, as each of them alone would be drawn", () => {
    const { random, tree } = unevenTree();
    const whole = viewOf(tree, ROOT);
    for (const width of [1, 37, 900]) {
      for (const share of [0, 0.002, 0.3, 1]) {
        const hits = Uint8Array.from({ length: tree.size }, () => (random() < share ? 1 : 0));
        for (const view of [whole, { from: whole.until / 3, until: whole.until / 2 }]) {
          const wanted = new Uint8Array(width);
          const scale = width / (view.until - view.from);
          for (const node of tree.levels[1] as Int32Array) {
            const [begin, weight] = [tree.start[node] as number, tree.weight[node] as number];
            if (hits[node] === 0 || weight <= 0 || begin >= view.until || begin + weight <= view.from) continue;
            const left = Math.min(width - 1, Math.max(0, Math.round((begin - view.from) * scale)));
            wanted.fill(1, left, Math.max(left + 1, Math.round((begin + weight - view.from) * scale)));
          }
          expect(marked(tree, hits, view, width)).toEqual(wanted);
        }
      }
    }
  });

  it("finds matches however many others share their pixel", () => {
    const calls = [{ name: "wide", self: 96_000 }];
    for (let i = 0; i < 4000; i++) calls.push({ name: `f${i}`, self: 1 });
    const tree = treeOf(answerOf(calls));
    const hits = new Uint8Array(tree.size);
    hits[2001] = hits[2003] = 1;
    expect([...marked(tree, hits).entries()].filter(([, flag]) => flag === 1)).toEqual([[980, 1]]);
  });

  it("shows nothing of frames that the side on the screen has not", () => {
    const calls = [
      { name: "stays", self: 1000, before: 1000 },
      { name: "gone", self: 0, before: 1 },
      { name: "new", self: 1, before: 0 },
    ];
    const tree = diffTreeOf(diffOf(calls), "after");
    expect(marked(tree, Uint8Array.of(0, 0, 1, 0), undefined, 10)).toEqual(new Uint8Array(10));
    expect(marked(tree, Uint8Array.of(0, 0, 0, 1), undefined, 10)[9]).toBe(1);
  });
});

describe("Runs", () => {
  const tree = treeOf(
    answerOf([
      {
        name: "a",
        calls: [
          { name: "b", self: 30 },
          { name: "c", self: 10 },
        ],
      },
    ]),
  );

  it("keeps what is asked for again, and nothing of what moves on", () => {
    const runs = new Runs();
    const whole = viewOf(tree, ROOT);
    const first = runs.at(tree, 2, whole, 200);
    expect(first).toEqual(rowRuns(tree, 2, whole, 200));
    expect(runs.cells(tree, 2, whole, 200)).not.toBe(runs.cells(tree, 2, whole, 200));
    const kept = runs.at(tree, 2, whole, 200);
    expect(kept).toEqual(first);
    expect(runs.at(tree, 2, whole, 200)).toBe(kept);
    const cells = runs.cells(tree, 2, whole, 200);
    expect(cells).toEqual(cellsOf(tree, 2, whole, 200));
    expect(runs.cells(tree, 2, whole, 200)).toBe(cells);
    for (const width of [100, 200]) {
      const part = { from: whole.from, until: whole.until / 2 };
      expect(runs.at(tree, 2, part, width)).toEqual(rowRuns(tree, 2, part, width));
      expect(runs.cells(tree, 2, part, width)).toEqual(cellsOf(tree, 2, part, width));
      expect(runs.at(tree, 1, part, width)).toEqual(rowRuns(tree, 1, part, width));
    }
    expect(runs.at(tree, 2, whole, 200)).toEqual(first);
  });
});
