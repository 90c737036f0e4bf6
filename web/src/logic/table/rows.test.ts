import { describe, expect, it } from "vitest";
import { scrollToRow, visibleRows } from "./rows.ts";

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
});
