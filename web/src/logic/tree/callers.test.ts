import { describe, expect, it } from "vitest";
import { answerOf, diffOf } from "../fixtures.ts";
import { functionsLike } from "../graph/functionsLike.ts";
import { callersAndCallees } from "./callers.ts";
import { placesOf, placesQuery, sourceText } from "./places.ts";
import { diffTreeOf, frameName, type Tree, treeOf } from "./tree.ts";

const calls = [
  {
    name: "main",
    calls: [
      {
        name: "walk",
        self: 1,
        before: 2,
        calls: [
          { name: "stat", self: 4, before: 1 },
          { name: "walk", self: 8, calls: [{ name: "stat", self: 16, calls: [{ name: "walk", self: 32 }] }] },
        ],
      },
      { name: "idle", self: 3 },
    ],
  },
  { name: "walk", self: 64 },
];
const named = (tree: Tree, name: string) => [...tree.parent.keys()].find((i) => frameName(tree, i) === name) as number;
const pairs = (list: { name: string; samples: number }[]) => list.map(({ name, samples }) => [name, samples]);

describe("callers and callees", () => {
  it("count each sample once, whatever calls itself", () => {
    const tree = treeOf(answerOf(calls));
    const { total, self, callers, callees } = callersAndCallees(tree, named(tree, "walk"));
    expect([total, self]).toEqual([1 + 4 + 8 + 16 + 32 + 64, 1 + 8 + 32 + 64]);
    // What stat calls lies below what main calls; both called walk.
    expect(pairs(callers)).toEqual([
      ["main", 61],
      ["walk", 56],
      ["stat", 32],
    ]);
    expect(pairs(callees)).toEqual([
      ["walk", 56],
      ["stat", 52],
    ]);
  });

  it("have both sides of a difference", () => {
    const tree = diffTreeOf(diffOf(calls), "both");
    const found = callersAndCallees(tree, named(tree, "stat"));
    expect([found.baseTotal, found.baseSelf]).toEqual([1, 1]);
    expect(found.callers[0]).toMatchObject({ name: "walk", samples: 52, baseSamples: 1 });
  });
});

describe("places of a function", () => {
  it("are asked for by name, or by module where there is none, and names cannot end the text", () => {
    const at = Date.UTC(2026, 10, 21, 8);
    const named = placesQuery({ name: "it's", module: "libc.so.6", kind: "native" }, at, at);
    expect(named).toContain("day BETWEEN '2026-11-21' AND '2026-11-21'");
    expect(named).toContain("function = 'it''s'");
    const bare = placesQuery({ name: "[libc.so.6]", module: "libc.so.6", kind: "native" }, at, at);
    expect(bare).toContain(`kind = 'native' AND function = '' GROUP BY`);
  });

  it("are put together by file of the module", () => {
    const rows = [
      ["/old/libc.so.6", "", "", 0, 0],
      ["/usr/lib/libc.so.6", "ab12", "malloc.c", 10, 90],
      ["/usr/lib/libc.so.6", "ab12", "arena.c", 7, 7],
      ["/usr/lib/libother.so", "cd", "x.c", 1, 1],
    ];
    const places = placesOf(rows, "libc.so.6");
    expect(places.map(({ module, buildId }) => [module, buildId])).toEqual([
      ["/usr/lib/libc.so.6", "ab12"],
      ["/old/libc.so.6", ""],
    ]);
    expect(places[0]?.sources.map(sourceText)).toEqual(["arena.c:7", "malloc.c:10–90"]);
  });
});

describe("functions by a word", () => {
  const tree = treeOf(answerOf(calls));
  it("are found in any case, those that begin with it first, then the largest", () => {
    expect(functionsLike(tree, "WALK", 5)).toEqual(["walk"]);
    // "stat" has 20 samples itself; "main" and "walk" contain the letter too.
    expect(functionsLike(tree, "a", 5)).toEqual(["walk", "stat", "main"]);
    expect(functionsLike(tree, "a", 1)).toEqual(["walk"]);
    expect(functionsLike(tree, "nothing", 5)).toEqual([]);
  });
});
