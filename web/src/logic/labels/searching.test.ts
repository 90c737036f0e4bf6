import { describe, expect, it } from "vitest";
import { holding } from "./searching.ts";

/** As the server reads it: anchored, and with its flags in front. */
const reads = (pattern: string) => new RegExp(`^(?:${pattern.replace("(?is)", "")})$`, "is");

describe("values that hold a word", () => {
  it("have it anywhere and in any case, as it is written", () => {
    const pattern = reads(holding("B.c", null));
    expect(["b.c", "a\nB.C d"].map((value) => pattern.test(value))).toEqual([true, true]);
    expect(["", "bxc", "b"].map((value) => pattern.test(value))).toEqual([false, false, false]);
    for (const word of ["a|b", "(", "[x]", "\\", "$^", "a{2}"])
      expect(reads(holding(word, null)).test(word)).toBe(true);
    expect(reads(holding("a|b", null)).test("a")).toBe(false);
  });

  it("are those too that are called so", () => {
    const ids = ["a", "b"].map((digit) => digit.repeat(64)) as [string, string];
    const names = new Map([
      [ids[0], "Postgres · db-0"],
      [ids[1], "web"],
    ]);
    const pattern = reads(holding("postgres", names));
    expect(ids.map((id) => pattern.test(id))).toEqual([true, false]);
    expect(holding("x", new Map(Array.from({ length: 500 }, (_, i) => [`${i}`.padEnd(64), "x"]))).length).toBeLessThan(
      8_000,
    );
  });
});
