import { describe, expect, it } from "vitest";
import { diffOf, type Frame } from "../fixtures.ts";
import { diffTreeOf } from "../tree/tree.ts";
import { figuresOf, findings, nameOf, remarkOf } from "./findings.ts";
import { sideNamesOf } from "./sideNames.ts";

const windows = { baseUntil: "14:00:00", from: "14:05:00" };
const sides = sideNamesOf("", "", true);
const apart = sideNamesOf('{container="a1"}', '{container="b2"}', false);
const telling = { normalize: "rate", measure: "total", windows, sides } as const;

function found(calls: Frame[], measure: "total" | "self" = "total") {
  const tree = diffTreeOf(diffOf(calls, measure), "both");
  return findings(tree, measure).map((finding) => ({
    name: nameOf(tree, finding),
    change: finding.change,
    before: finding.before,
    after: finding.after,
    where: finding.where,
    parts: finding.parts.map((part) => part.name),
  }));
}

/** A frame whose callees keep their shares. */
const mixed = (name: string, before: number, after: number, calls: Frame[] = []): Frame => ({
  name,
  before,
  self: after,
  calls,
});

describe("what changed, in findings", () => {
  it("names the frame that grew, not its callers", () => {
    const walk: Frame = mixed("filepath.Walk", 10, 100, [mixed("lstat", 20, 300), mixed("readdir", 16, 200)]);
    const steady: Frame = mixed("sync", 400, 400);
    const calls = [{ name: "main", calls: [steady, { name: "housekeeping", module: "kubelet", calls: [walk] }] }];
    expect(found(calls)).toEqual([
      {
        name: "filepath.Walk",
        change: "grew",
        before: 46,
        after: 600,
        where: "kubelet",
        parts: ["lstat", "readdir"],
      },
    ]);
  });

  it("tells two causes under one caller apart, also a small one beside a large one", () => {
    const calls = [
      {
        name: "thread",
        calls: [mixed("sync", 300, 300), mixed("walk", 20, 500), mixed("gc", 40, 300), mixed("tiny", 1, 30)],
      },
    ];
    expect(found(calls).map((one) => one.name)).toEqual(["walk", "gc", "tiny"]);
    const lopsided = [{ name: "thread", calls: [mixed("walk", 20, 1000), mixed("gc", 10, 60)] }];
    expect(found(lopsided).map((one) => one.name)).toEqual(["walk", "gc"]);
  });

  it("says it of the caller where everything below grew alike", () => {
    const calls = [{ name: "serve", calls: [mixed("parse", 300, 600), mixed("reply", 500, 1000)] }];
    expect(found(calls)).toMatchObject([{ name: "serve", before: 800, after: 1600, parts: ["reply", "parse"] }]);
    expect(found([mixed("a", 300, 600), mixed("b", 500, 1000)])[0]?.name).toBe("Everything that is selected");
  });

  it("names a recursion by its outermost frame", () => {
    let walk: Frame = mixed("walk", 0, 100);
    for (let depth = 0; depth < 1000; depth++) walk = mixed("walk", 0, 0, [walk]);
    const calls = [{ name: "main", calls: [mixed("work", 50, 50), walk] }];
    const tree = diffTreeOf(diffOf(calls), "both");
    const [only, ...more] = findings(tree, "total");
    expect(more).toEqual([]);
    expect(only?.change).toBe("new");
    expect(tree.depth[only?.node ?? 0]).toBe(2);
  });

  it("keeps what shrank below something that grew, and what changed below what did not", () => {
    const calls = [
      { name: "a", calls: [mixed("more", 10, 900), mixed("less", 200, 100)] },
      { name: "b", calls: [mixed("came", 0, 50), mixed("went", 50, 0)] },
    ];
    expect(found(calls)).toMatchObject([
      { name: "more", change: "grew" },
      { name: "less", change: "shrank" },
      { name: "came", change: "new" },
      { name: "went", change: "gone" },
    ]);
  });

  it("names what came below a caller that hardly grew, since something else shrank there", () => {
    const wait = mixed("wait_until", 0, 20, [mixed("dumps", 0, 120), mixed("loads", 0, 140)]);
    const calls = [{ name: "run_job", calls: [wait, mixed("build_report", 500, 320)] }];
    expect(found(calls)).toMatchObject([
      { name: "wait_until", change: "new", after: 280, parts: ["loads", "dumps"] },
      { name: "build_report", change: "shrank" },
    ]);
  });

  it("finds the program behind frames of the kernel and of libraries", () => {
    const calls = [
      {
        name: "_start",
        module: "dd",
        calls: [
          {
            name: "read",
            module: "libc.so.6",
            calls: [{ name: "chacha_permute", kind: "kernel", module: "[kernel]", self: 500 }],
          },
        ],
      },
      { name: "ret_from_fork", kind: "kernel", module: "[kernel]", self: 90 },
      { name: "idle", before: 400, self: 400 },
    ];
    expect(found(calls).map((one) => [one.name, one.where])).toEqual([
      ["chacha_permute", "dd"],
      ["ret_from_fork", "the kernel"],
    ]);
  });

  it("tells the caller of a function that is found twice", () => {
    const calls = [
      mixed("steady", 1900, 1900),
      { name: "a", calls: [mixed("poll", 0, 100), mixed("x", 50, 50)] },
      { name: "b", calls: [mixed("poll", 0, 140), mixed("x", 50, 50)] },
    ];
    const tree = diffTreeOf(diffOf(calls), "both");
    expect(findings(tree, "total").map((finding) => finding.caller)).toEqual(["b", "a"]);
    const [first] = findings(tree, "total");
    if (first === undefined) throw new Error("nothing found");
    expect(remarkOf(first, telling)).toMatch(/^called by b; new: /);
  });

  it("judges each frame by itself where own time is compared", () => {
    const calls = [{ name: "main", calls: [mixed("walk", 20, 500, [mixed("lstat", 10, 300)])] }];
    expect(found(calls, "self")).toMatchObject([
      { name: "walk", before: 20, after: 500 },
      { name: "lstat", before: 10, after: 300 },
    ]);
  });

  it("has nothing to say where nothing differs", () => {
    expect(found([mixed("a", 5, 5)])).toEqual([]);
  });
});

describe("a finding in words", () => {
  const finding = {
    node: 1,
    change: "grew",
    where: "kubelet",
    caller: "",
    before: 0.05,
    after: 0.62,
    delta: 0.57,
    low: 0.51,
    high: 0.63,
    beforeSamples: 16,
    afterSamples: 15_000,
    parts: [{ name: "lstat", delta: 0.3 }],
  } as const;
  const plain = (text: string) => text.replaceAll("\u202f", " ");

  it("has both sides, the difference and its interval", () => {
    expect(figuresOf({ ...finding, parts: [] }, telling)).toBe(
      "0.050 → 0.620 cores (+0.570, between +0.510 and +0.630), 12.4×",
    );
    expect(plain(figuresOf({ ...finding, parts: [] }, { ...telling, normalize: "share" }))).toBe(
      "5.00 % → 62.0 % (+57.0 %, between +51.0 % and +63.0 %), 12.4×",
    );
  });

  it("says since when, and what it is made of", () => {
    expect(plain(remarkOf({ ...finding, parts: [...finding.parts] }, telling))).toBe(
      "16 samples before, 15 000 samples after; with lstat (+0.300)",
    );
    const fresh = { ...finding, change: "new", parts: [] } as const;
    expect(plain(remarkOf({ ...fresh, parts: [] }, telling))).toBe(
      "new: not a sample in A, seen since 14:05:00; 15 000 samples",
    );
    expect(plain(remarkOf({ ...fresh, parts: [] }, { ...telling, sides: apart }))).toBe("only in b2; 15 000 samples");
    const gone = { ...finding, change: "gone", beforeSamples: 70, afterSamples: 0 } as const;
    expect(remarkOf({ ...gone, parts: [] }, telling)).toBe("gone: not seen in B, last in A until 14:00:00; 70 samples");
  });
});
