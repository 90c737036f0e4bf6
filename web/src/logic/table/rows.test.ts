import { describe, expect, it } from "vitest";
import { placeOfRow, scrollToRow, visibleRows } from "./rows.ts";

describe("long tables", () => {
  it("draws the rows in sight and some around", () => {
    expect(visibleRows(10_000, 24, 2400, 240, 2)).toEqual({ first: 98, behind: 112 });
    expect(visibleRows(3, 24, 0, 240)).toEqual({ first: 0, behind: 3 });
    expect(visibleRows(3, 24, 9999, 240)).toEqual({ first: 3, behind: 3 });
  });

  it("scrolls no further than needed", () => {
    expect(scrollToRow(0, 24, 100, 240)).toBe(0);
    expect(scrollToRow(20, 24, 0, 240)).toBe(264);
    expect(scrollToRow(5, 24, 0, 240)).toBe(0);
  });

  it("finds the row that somebody is at, whatever order a newer answer has", () => {
    const keyOf = (row: string) => row;
    expect(placeOfRow(["a", "b"], keyOf, null)).toBe(0);
    const at = { at: 1, key: "b" };
    expect(placeOfRow(["a", "b", "c"], keyOf, at)).toBe(1);
    expect(placeOfRow(["c", "d", "b", "a"], keyOf, at)).toBe(2);
    // Gone: what came to its place; at the end, the last one.
    expect(placeOfRow(["a", "c"], keyOf, at)).toBe(1);
    expect(placeOfRow(["a"], keyOf, at)).toBe(0);
    expect(placeOfRow([], keyOf, at)).toBe(0);
  });

  it("goes through rows of one key by their place", () => {
    expect(placeOfRow(["a", "b", "b"], (row) => row, { at: 2, key: "b" })).toBe(2);
  });
});
