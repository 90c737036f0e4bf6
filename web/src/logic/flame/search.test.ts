import { describe, expect, it } from "vitest";
import { answerOf, diffOf, type Frame } from "../fixtures.ts";
import { diffTreeOf, ROOT, type Tree, treeOf } from "../tree/tree.ts";
import {
  exactPattern,
  Letters,
  type Matcher,
  matcherOf,
  matchesOf,
  namesOf,
  nextHit,
  patternName,
  search,
  serverPattern,
  type Wanted,
} from "./search.ts";

const wantedOf = (text: string): Wanted => {
  const wanted = matcherOf(text);
  if (wanted === null || "error" in wanted) throw new Error("no matcher");
  return wanted;
};
const by = (text: string): Matcher => wantedOf(text).matcher;

const find = (tree: Tree, text: string, focus = ROOT) =>
  search(tree, matchesOf(tree, namesOf(tree), wantedOf(text)), focus);

const tree = treeOf(
  answerOf([
    {
      name: "main",
      self: 10,
      calls: [{ name: "walk", self: 20, calls: [{ name: "walk", self: 30, calls: [{ name: "walk", self: 5 }] }] }],
    },
    { name: "idle", self: 35 },
  ]),
);

describe("search", () => {
  it("counts a recursion once", () => {
    const found = find(tree, "walk");
    expect(found.frames).toBe(3);
    expect(found.samples).toBe(55);
    expect(found.afterShare).toBeCloseTo(0.55);
    expect([...tree.name.keys()].map((node) => found.hits.has(node))).toEqual([false, false, true, true, true, false]);
  });

  it("tells few hits row by row, and many by flags alone", () => {
    const calls = Array.from({ length: 40 }, (_, i) => ({
      name: `f${i}`,
      self: 1,
      calls: [{ name: `g${i}`, self: 1 }],
    }));
    const wide = treeOf(answerOf([{ name: "f1", self: 1 }, ...calls]));
    const { few } = find(wide, "/^(f3|g3|g17)$/");
    const row = (depth: number) => few && [...few.nodes.subarray(few.begin[depth], few.begin[depth + 1])];
    const named = (name: string) => [...wide.name.keys()].filter((i) => wide.strings[wide.name[i] as number] === name);
    expect([0, 1, 2].map(row)).toEqual([[], named("f3"), [...named("g3"), ...named("g17")].sort((a, b) => a - b)]);
    expect(few?.nodes.length).toBe(3);
    expect(find(wide, "f").few).toBeNull();
    expect(find(wide, "nothing").few?.nodes.length).toBe(0);
  });

  it("does not take the name of folded frames for a function's", () => {
    const folded = treeOf(
      answerOf([
        { name: "frame_pointer", self: 3 },
        { name: "7 frames below the threshold", kind: "trimmed", self: 2 },
      ]),
    );
    expect(find(folded, "frame").samples).toBe(3);
    expect(folded.trimmed).toBe(true);
  });

  it("takes shares of what is zoomed", () => {
    expect(find(tree, "walk", 1).afterShare).toBeCloseTo(55 / 65);
    expect(find(tree, "idle", 1).samples).toBe(0);
    const inner = find(tree, "walk", 3);
    expect([inner.frames, inner.framesInAll]).toEqual([2, 3]);
  });

  it("reads text as text and /…/ as an expression", () => {
    expect(by("WALK")("filepath.Walk")).toBe(true);
    expect(by("a.b")("axb")).toBe(false);
    expect(by("[a](b)*\\d")("x[A](b)*\\D")).toBe(true);
    expect(by("ÜBER/die")("über/DIE")).toBe(true);
    expect(by("/^w.*k$/")("walk")).toBe(true);
    expect(by("/^W/")("walk")).toBe(false);
    expect(by("/^W/i")("walk")).toBe(true);
    expect(matcherOf("  ")).toBeNull();
    expect(matcherOf("/(/")).toHaveProperty("error");
  });

  it("gives both sides of a difference", () => {
    const diff = diffTreeOf(
      diffOf([
        { name: "walk", self: 30, before: 2 },
        { name: "rest", self: 30, before: 8 },
      ]),
      "both",
    );
    const found = find(diff, "walk");
    expect([found.baseSamples, found.samples]).toEqual([2, 30]);
    expect(found.baseShare).toBeCloseTo(0.2);
    expect(found.afterShare).toBeCloseTo(0.5);
  });

  it("counts what one would count frame by frame", () => {
    let state = 11;
    const random = (below: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const calls = (depth: number): Frame[] =>
      Array.from({ length: depth > 6 ? 0 : 1 + random(4) }, () => ({
        name: random(40) === 0 ? "all" : `f${random(60)}`,
        self: random(3),
        calls: calls(depth + 1),
      }));
    const deep = treeOf(answerOf(calls(0)));
    expect(deep.size).toBeGreaterThan(200);
    for (const text of ["f", "f1", "f17", "/^f[2-4]$/", "all", "nothing"]) {
      const { matcher } = wantedOf(text);
      const matching = [...deep.name.keys()].filter(
        (i) => i > 0 && matcher(deep.strings[deep.name[i] as number] as string),
      );
      for (const focus of [ROOT, 1, random(deep.size)]) {
        const inFocus = matching.filter((i) => i >= focus && i < (deep.end[focus] as number));
        const outermost = inFocus.filter((i) => !inFocus.some((above) => above < i && (deep.end[above] as number) > i));
        const found = find(deep, text, focus);
        expect([text, focus, found.framesInAll, found.frames]).toEqual([text, focus, matching.length, inFocus.length]);
        expect(found.samples).toBe(outermost.reduce((sum, i) => sum + (deep.total[i] as number), 0));
        expect([...deep.name.keys()].filter((i) => found.hits.has(i))).toEqual(matching);
        if (found.few !== null) expect([...found.few.nodes].sort((a, b) => a - b)).toEqual(matching);
      }
    }
    expect(find(deep, "f17").few).not.toBeNull();
  });

  it("goes round the matches in both directions", () => {
    const { hits } = find(tree, "walk");
    expect(nextHit(tree, hits, 4, 1)).toBe(2);
    expect(nextHit(tree, hits, 2, -1)).toBe(4);
    expect(nextHit(tree, find(tree, "nothing").hits, 2, 1)).toBeNull();
  });

  it("writes patterns that mean the same elsewhere", () => {
    const name = "std::vec<int>::at(long) [clone .part.0] a/b";
    expect(by(exactPattern(name))(name)).toBe(true);
    expect(by(exactPattern(name))(`${name}x`)).toBe(false);
    expect(patternName(exactPattern(name))).toBe(name);
    for (const other of ["read", "/^a.*b$/", "/^a/", ""]) expect(patternName(other)).toBe(other);
    expect(serverPattern("a.b(")).toBe("(?i)a\\.b\\(");
    expect(serverPattern("/a.b/")).toBe("a.b");
    expect(serverPattern("/a.b/i")).toBe("(?i)a.b");
    expect(serverPattern("")).toBe("");
  });
});

describe("a search that is typed", () => {
  const names = ["read_file", "READ", "thread", "Straße", "breadth", "İread", "ready"];
  const typed = treeOf(answerOf(names.map((name) => ({ name, self: 1, module: "read.so" }))));

  it("finds with each letter, and each that is taken back, what a new search finds", () => {
    const texts = [
      "r",
      "re",
      "REA",
      "rea",
      "read",
      "read_",
      "read",
      "/^read/",
      "read",
      "ß",
      "ss",
      "",
      "ea",
      "thread",
      "e",
    ];
    const letters = new Letters(typed.strings, namesOf(typed));
    for (const text of texts) {
      if (matcherOf(text) === null) continue;
      const wanted = wantedOf(text);
      expect([text, letters.matches(wanted)]).toEqual([text, matchesOf(typed, namesOf(typed), wanted)]);
    }
  });

  it("looks only at names that another letter can change", () => {
    const looked: string[] = [];
    const watched = (text: string): Wanted => {
      const { matcher, plain } = wantedOf(text);
      return { matcher: (name) => looked.push(name) > 0 && matcher(name), plain };
    };
    const letters = new Letters(typed.strings, namesOf(typed));
    const first = letters.matches(watched("thr"));
    expect(looked.splice(0)).toEqual(names);
    letters.matches(watched("thre"));
    expect(looked.splice(0)).toEqual(["thread"]);
    letters.matches(watched("hr"));
    expect(looked.splice(0)).toEqual(names.filter((name) => name !== "thread"));
    expect(letters.matches(watched("thr"))).toBe(first);
    expect(looked).toEqual([]);
    letters.matches(watched("thre"));
    letters.matches(watched("thread"));
    expect(looked).toEqual(["thread"]);
  });

  it("forgets texts of long ago where names are many", () => {
    const many = Array.from({ length: 1 << 21 }, (_, i) => (i < 3 ? ["one", "two", "three"][i] : "")) as string[];
    let looked = 0;
    const watched = (text: string): Wanted => {
      const { matcher, plain } = wantedOf(text);
      return { matcher: (name) => ++looked > 0 && matcher(name), plain };
    };
    const letters = new Letters(many, Int32Array.of(0, 1, 2));
    for (const text of ["on", "tw", "thr"]) letters.matches(watched(text));
    looked = 0;
    letters.matches(watched("tw"));
    expect(looked).toBe(0);
    expect([...letters.matches(watched("on")).subarray(0, 3)]).toEqual([1, 0, 0]);
    expect(looked).toBe(3);
  });

  it("is for names of frames, not for modules", () => {
    expect([...namesOf(typed)].map((id) => typed.strings[id])).toEqual(names);
    expect(search(typed, matchesOf(typed, namesOf(typed), wantedOf(".so"))).framesInAll).toBe(0);
  });
});
