import { describe, expect, it } from "vitest";
import { atOnce, STEP } from "../tree/slices.ts";
import { sorting } from "./sorting.ts";

describe("sorting in steps", () => {
  // As many of each as there are in one piece, in whole pieces, and in pieces of which the last is short or has no
  // neighbour.
  it.each([0, 1, 100, STEP, 2 * STEP, 3 * STEP + 5, 65_537])("comes to what sorting at once comes to: %i", (size) => {
    let seed = 7;
    const random = () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 1;
      return seed;
    };
    const weight = Int32Array.from({ length: size }, () => random() % 100);
    const list = Int32Array.from({ length: size }, (_, i) => i);
    const compare = (a: number, b: number) => (weight[b] as number) - (weight[a] as number);
    const wanted = [...list].sort(compare);
    atOnce(sorting(list, compare));
    expect([...list]).toEqual(wanted);
  });

  it("compares no more than a few pieces' worth in one step", () => {
    let compared = 0;
    const list = Int32Array.from({ length: 50_000 }, (_, i) => (i * 7919) % 50_000);
    const steps = sorting(list, (a, b) => {
      compared++;
      return a - b;
    });
    let most = 0;
    for (let next = steps.next(); !next.done; next = steps.next()) {
      most = Math.max(most, compared);
      compared = 0;
    }
    expect(most).toBeLessThan(STEP * Math.log2(STEP) * 1.1);
    expect(list).toEqual(Int32Array.from({ length: 50_000 }, (_, i) => i));
  });
});
