import { describe, expect, it } from "vitest";
import type { DiffTopRow } from "../../api/types.ts";
import type { UnitChoice } from "../text/figure.ts";
import { columnsFor } from "./columns.ts";
import { diffRows, sidePairs } from "./diffRows.ts";
import { measureFor } from "./measured.ts";

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

  it("ranks CPU time by what was compared", () => {
    const counts = [
      { ...row("main", 0, 0, "same"), base_total: 90, base_self: 0, total: 80, self: 1 },
      { ...row("walk", 0, 0, "same"), base_total: 10, base_self: 10, total: 70, self: 60 },
    ];
    const first = (key: "beforeTime" | "afterTime", measure?: "self") =>
      diffRows(counts, key, true, "", null, measure)[0]?.name;
    expect([first("beforeTime"), first("afterTime")]).toEqual(["main", "main"]);
    expect([first("beforeTime", "self"), first("afterTime", "self")]).toEqual(["walk", "walk"]);
  });

  it("is by what functions take themselves, unless a measure was chosen", () => {
    expect([measureFor("function", ""), measureFor("process", "")]).toEqual(["self", ""]);
    expect([measureFor("function", "total"), measureFor("process", "self")]).toEqual(["total", "self"]);
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

describe("columns of both sides", () => {
  it("tell CPU time of both sides in a pane of 420 pixels and on a phone, and both pairs where there is room", () => {
    const of = (pixels: number, isTime: boolean, choice: UnitChoice | "") => {
      const { time, level } = sidePairs(isTime, choice);
      const pairs = [
        ["time", time],
        ["level", level],
      ] as const;
      const there = pairs.flatMap(([key, from]) => (from === null ? [] : [{ key, width: { beside: "66px", from } }]));
      return columnsFor(there, "beside", pixels).shown.map(({ key }) => key);
    };
    for (const narrow of [360, 390, 404, 419, 429]) {
      expect(of(narrow, true, "")).toEqual(["time"]);
      expect(of(narrow, true, "cores")).toEqual(["level"]);
      expect(of(narrow, true, "samples")).toEqual(["level"]);
      expect(of(narrow, true, "share")).toEqual(["level"]);
    }
    for (const choice of ["", "cores", "samples", "share"] as const)
      expect(of(468, true, choice)).toEqual(["time", "level"]);
    // Time is told once; what is no time has none.
    for (const pixels of [360, 1_400]) {
      expect(of(pixels, true, "time")).toEqual(["time"]);
      expect(of(pixels, false, "time")).toEqual(["level"]);
    }
  });
});
