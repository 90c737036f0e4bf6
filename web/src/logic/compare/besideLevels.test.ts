import { describe, expect, it } from "vitest";
import { diffOf } from "../fixtures.ts";
import { transformed } from "../transform/transform.ts";
import { diffTreeOf, frameName, ROOT, type Tree, withWidth } from "../tree/tree.ts";
import { besideLevels } from "./besideLevels.ts";

const CALLS = [
  { name: "walk", module: "m", before: 10, self: 30, calls: [{ name: "read", module: "m", before: 20, self: 10 }] },
  { name: "gone", module: "m", before: 30, self: 0 },
];
const tree = diffTreeOf(diffOf(CALLS), "both");
const at = (of: Tree, name: string) => [...of.name.keys()].find((i) => frameName(of, i) === name) as number;

describe("graphs side by side", () => {
  it("are as wide as the cores of their sides", () => {
    // 60 samples in 0.3 cores, 40 in 0.8: a sample of B stands for four of A.
    const of = (node: number) => besideLevels(tree, node, [0.3, 0.8], [60, 40]);
    expect(of(ROOT)).toEqual({ levels: [0.3, 0.8], widths: [0.3 / 0.8, 1], isCores: true });
    expect(of(at(tree, "read")).levels[0]).toBeCloseTo(0.1);
    expect(of(at(tree, "read")).levels[1]).toBeCloseTo(0.2);
    expect(of(at(tree, "read")).widths).toEqual([0.5, 1].map((width) => expect.closeTo(width)));
    expect(of(at(tree, "gone"))).toEqual({ levels: [0.15, 0], widths: [1, 0], isCores: true });
  });

  it("are as wide as what was compared where there are no cores", () => {
    expect(besideLevels(tree, ROOT, null, [60, 40])).toEqual({
      levels: [60, 40],
      widths: [1, 40 / 60],
      isCores: false,
    });
    expect(besideLevels(tree, ROOT, [0, 0], [0, 0]).widths).toEqual([0, 0]);
  });

  it("have the same frames by number, whatever was done to the tree", () => {
    for (const text of ["invert", "sandwich"] as const) {
      const changed = transformed(tree, [text === "invert" ? { op: text, name: "" } : { op: text, name: "read" }]).tree;
      for (const width of ["before", "after"] as const) {
        const side = withWidth(changed, width);
        const { shape, rootRow, callersFrom } = changed;
        expect(side).toMatchObject({ shape, rootRow, callersFrom });
        expect([...side.depth]).toEqual([...changed.depth]);
        expect([...side.name]).toEqual([...changed.name]);
        expect([...side.weight]).toEqual([
          ...((width === "before" ? changed.diff?.baseNorm : changed.diff?.norm) ?? []),
        ]);
      }
    }
  });
});
