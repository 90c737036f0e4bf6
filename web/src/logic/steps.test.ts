import { describe, expect, it } from "vitest";
import { atOnce, inTurns, type Steps } from "./steps.ts";

function* counting(taken: number[]): Steps<string> {
  for (let i = 0; i < 5; i++) {
    taken.push(i);
    yield;
  }
  return "done";
}

describe("work in steps", () => {
  it("comes to the same, at once and in turns", async () => {
    expect(atOnce(counting([]))).toBe("done");
    let turns = 0;
    const rest = () => (++turns % 2 === 0 ? Promise.resolve(true) : true);
    expect(await inTurns(counting([]), rest)).toBe("done");
    expect(turns).toBe(5);
  });

  it("ends at the step at which it is given up", async () => {
    const taken: number[] = [];
    expect(await inTurns(counting(taken), () => Promise.resolve(taken.length < 3))).toBeNull();
    expect(taken).toEqual([0, 1, 2]);
  });
});
