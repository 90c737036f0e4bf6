import { describe, expect, it } from "vitest";
import { answerOf } from "../fixtures.ts";
import { matchOf, pathMatchOf } from "./frameMatch.ts";
import { treeOf } from "./tree.ts";

describe("one frame as the server looks for it", () => {
  it("has its kind and module beside its name, with what divides them escaped", () => {
    expect(matchOf({ kind: "native", module: "kubelet", name: "main.main" })).toEqual({
      match_frame: "native,kubelet,main.main",
    });
    expect(matchOf({ kind: "jit", module: "a,b;c\\d", name: "f(int, char*); \\x" })).toEqual({
      match_frame: "jit,a\\,b\\;c\\\\d,f(int, char*)\\; \\\\x",
    });
    expect(matchOf({ kind: "unknown", module: "", name: "[unknown]" })).toEqual({ match_frame: "unknown,,[unknown]" });
  });

  it("at its place has all frames above it, each with its own module", () => {
    const tree = treeOf(
      answerOf([
        { name: "main", module: "a", calls: [{ name: "read", module: "[kernel]", kind: "kernel", self: 1 }] },
        { name: "main", module: "b", calls: [{ name: "read", module: "[kernel]", kind: "kernel", self: 2 }] },
      ]),
    );
    expect([2, 4].map((node) => pathMatchOf(tree, node))).toEqual([
      { match_path: "native,a,main;kernel,[kernel],read" },
      { match_path: "native,b,main;kernel,[kernel],read" },
    ]);
  });

  it("is not asked for at a place that no address can hold", () => {
    const name = "n".repeat(500);
    const calls = Array.from({ length: 20 }).reduce<{ name: string }[]>((inner) => [{ name, calls: inner }], []);
    expect(pathMatchOf(treeOf(answerOf(calls)), 20)).toBeNull();
  });
});
