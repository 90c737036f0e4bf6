import { describe, expect, it } from "vitest";
import { atOnce, inSlices, type Steps } from "./slices.ts";

function* counting(taken: number[]): Steps<string> {
  for (let i = 0; i < 5; i++) {
    taken.push(i);
    yield;
  }
  return "done";
}

describe("work in steps", () => {
  it("comes to the same, at once and in slices", async () => {
    expect(atOnce(counting([]))).toBe("done");
    let rests = 0;
    const rest = () => (++rests % 2 === 0 ? Promise.resolve(true) : true);
    expect(await inSlices(counting([]), rest)).toBe("done");
    expect(rests).toBe(5);
  });

  it("ends at the step at which it is given up", async () => {
    const taken: number[] = [];
    expect(await inSlices(counting(taken), () => Promise.resolve(taken.length < 3))).toBeNull();
    expect(taken).toEqual([0, 1, 2]);
  });
});
