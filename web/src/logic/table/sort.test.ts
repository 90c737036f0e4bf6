import { expect, it } from "vitest";
import { sortOf, sortText } from "./sort.ts";

it("takes a sort through the address, and the table's own where it has no such column", () => {
  const keys = ["name", "self"] as const;
  const usual = { key: "self", descending: true } as const;
  for (const key of keys)
    for (const descending of [true, false]) {
      expect(sortOf(sortText({ key, descending }), keys, usual)).toEqual({ key, descending });
    }
  for (const text of ["", "-", "cores", "--self"]) expect(sortOf(text, keys, usual)).toBe(usual);
});
