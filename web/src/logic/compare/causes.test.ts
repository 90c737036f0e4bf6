import { describe, expect, it } from "vitest";
import type { DiffTopRow } from "../../api/types.ts";
import { diffOf, type Frame } from "../fixtures.ts";
import { diffTreeOf } from "../tree/tree.ts";
import { cpuSecondsOf, judgedText } from "./bothSides.ts";
import { causesOf, chainNames, changedRows, headline } from "./causes.ts";

const frame = (name: string, before: number, after: number, calls: Frame[] = []): Frame => ({
  name,
  before,
  self: after,
  calls,
});

/** One thread that walks more, below a chain of callers, beside steady work. */
const walk = frame("walk", 40, 600);
const calls: Frame[] = [
  {
    name: "_start",
    calls: [frame("sync", 900, 900), { name: "thread_start", calls: [{ name: "housekeeping", calls: [walk] }] }],
  },
];

const row = (name: string, state: string, delta: number) => ({ name, state, delta }) as DiffTopRow;

describe("causes", () => {
  it("are the lowest frames that explain a change; callers of the same change are their chain", () => {
    const tree = diffTreeOf(diffOf(calls, "total"), "both");
    const causes = causesOf(tree, "total");
    expect(causes).toHaveLength(1);
    const [cause] = causes;
    if (cause === undefined) throw new Error("no cause");
    expect(chainNames(tree, cause).slice(-3)).toEqual(["thread_start", "housekeeping", "walk"]);
    expect(chainNames(tree, cause)).not.toContain("sync");
  });

  it("have no chain where callers differ by more than they do", () => {
    const two: Frame[] = [
      { name: "main", calls: [frame("sync", 300, 300), frame("walk", 20, 500), frame("gc", 40, 300)] },
    ];
    const tree = diffTreeOf(diffOf(two, "total"), "both");
    expect(causesOf(tree, "total").map((cause) => chainNames(tree, cause))).toEqual([["walk"], ["gc"]]);
  });

  it("stand alone where frames are compared by what they take themselves", () => {
    const tree = diffTreeOf(diffOf(calls, "self"), "both");
    for (const cause of causesOf(tree, "self")) expect(cause.chain).toEqual([cause.finding.node]);
  });

  it("are none where nothing differs", () => {
    const tree = diffTreeOf(diffOf([frame("main", 500, 500)], "total"), "both");
    expect(causesOf(tree, "total")).toEqual([]);
    expect(headline(tree, [], [row("idle", "grew", 1)])).toBe("");
  });

  it("are told with the threads that changed, where those are few", () => {
    const tree = diffTreeOf(diffOf(calls, "total"), "both");
    const causes = causesOf(tree, "total");
    expect(headline(tree, causes, [row("sync", "same", 9), row("housekeeping", "grew", 0.5)])).toBe(
      "walk; thread housekeeping",
    );
    const many = ["a", "b", "c"].map((name) => row(name, "grew", 1));
    expect(headline(tree, causes, many)).toBe("walk");
  });

  it("are counted beside the largest, which has its caller where another has its name", () => {
    const two: Frame[] = [
      { name: "main", calls: [frame("sync", 300, 300), frame("walk", 20, 500), frame("gc", 40, 300)] },
    ];
    const other = diffTreeOf(diffOf(two, "total"), "both");
    const both = [row("housekeeping", "grew", 0.5), row("gc", "grew", 0.2)];
    expect(headline(other, causesOf(other, "total"), both)).toBe("walk and 1 more; threads housekeeping, gc");
    const price: Frame = { name: "price_items", calls: [frame("spin", 30, 600)] };
    const parse: Frame = { name: "parse_order", calls: [frame("spin", 300, 60)] };
    const same = diffTreeOf(
      diffOf([{ name: "main", calls: [price, parse, frame("idle", 500, 500)] }], "total"),
      "both",
    );
    expect(headline(same, causesOf(same, "total"), [])).toBe("spin below price_items and 1 more");
  });
});

describe("a judged table", () => {
  it("has what changed first, by the size of the change in either direction", () => {
    const rows = [row("chance", "same", 9), row("less", "gone", -3), row("more", "grew", 2)];
    expect(changedRows(rows).map(({ name }) => name)).toEqual(["less", "more"]);
  });

  it("tells CPU time of both sides, of counts that are by value, and of what is compared", () => {
    const sides = { base_samples: 200, base_cpu_seconds: 10, samples: 400, cpu_seconds: 20 };
    const counts = { base_total: 50, base_self: 10, total: 100, self: 40 };
    expect(cpuSecondsOf(counts, sides)).toEqual({ before: 2.5, after: 5 });
    expect(cpuSecondsOf(counts, { ...sides, measure: "self" })).toEqual({ before: 0.5, after: 2 });
    const noTime = { ...sides, base_cpu_seconds: null, cpu_seconds: null };
    expect(cpuSecondsOf(counts, noTime)).toEqual({ before: null, after: null });
    expect(cpuSecondsOf(counts, { ...sides, base_samples: 0, base_cpu_seconds: 0 }).before).toBe(0);
  });

  it("says its own false discovery rate", () => {
    expect(judgedText({ tested: 5, significant: 1, confidence: 0.95 })).toBe(
      "1 of 5 changed; false discovery rate of this table: 5 %",
    );
    expect(judgedText({ tested: 5, significant: 0, confidence: 0.999 })).toBe(
      "no significant change; false discovery rate of this table: 0.1 %",
    );
    expect(judgedText({ tested: 0, significant: 0, confidence: 0.9 })).toContain("too few samples");
  });
});
