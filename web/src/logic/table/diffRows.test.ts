import { describe, expect, it } from "vitest";
import type { DiffTopRow } from "../../api/types.ts";
import { diffRows } from "./diffRows.ts";

describe("functions of a difference", () => {
  const row = (name: string, base_norm: number, norm: number, state: string) =>
    ({ name, base_norm, norm, delta: norm - base_norm, state }) as DiffTopRow;
  const rows = [
    row("same", 5, 9.1, "same"),
    row("grew", 1, 3, "grew"),
    row("gone", 4, 0, "gone"),
    row("new", 0, 1, "new"),
  ];

  it("ranks changes by size, whatever their direction", () => {
    expect(diffRows(rows, "delta", true, "", null).map((r) => r.name)).toEqual(["gone", "grew", "new", "same"]);
    expect(diffRows(rows, "factor", true, "", null).map((r) => r.name)).toEqual(["new", "grew", "same", "gone"]);
  });

  it("leaves out what is not shown to differ, and what does not match", () => {
    expect(diffRows(rows, "before", true, "significant", null).map((r) => r.name)).toEqual(["gone", "grew", "new"]);
    expect(diffRows(rows, "name", true, "gone", null).map((r) => r.name)).toEqual(["gone"]);
    expect(diffRows(rows, "name", false, "", (name) => name.startsWith("g")).map((r) => r.name)).toEqual([
      "gone",
      "grew",
    ]);
  });
});
