import { describe, expect, it } from "vitest";
import { answerOf, diffOf } from "../fixtures.ts";
import { treeOf } from "../tree/tree.ts";
import { escaped, scriptJson } from "./escape.ts";
import { factsOfPair, factsOfPreceding, factsOfWindow, factsOfWoken } from "./facts.ts";
import { fileFrames } from "./frames.ts";

const paint = (): [string, string, string, string] => ["#fff", "#000", "#000", "#fff"];

describe("a file of a graph", () => {
  it("has all frames with their sums, and leaves out what is lightest where they are many", () => {
    const tree = treeOf(
      answerOf([
        { name: "a", self: 5, calls: [{ name: "b", self: 90, calls: [{ name: "c", self: 1 }] }] },
        { name: "d", self: 4 },
      ]),
    );
    const all = fileFrames(tree, paint);
    expect(all.name.map((i) => all.names[i])).toEqual(["all", "a", "b", "c", "d"]);
    expect(all.total).toEqual([100, 96, 91, 1, 4]);
    expect(all.parent).toEqual([-1, 0, 1, 2, 0]);
    const few = fileFrames(tree, paint, 3);
    expect(few.name.map((i) => few.names[i])).toEqual(["all", "a", "b"]);
    expect(few.total).toEqual([100, 96, 91]);
    expect([few.all, few.least]).toEqual([5, 0.91]);
  });

  it("escapes what others wrote, in markup and in scripts", () => {
    expect(escaped(`</title><script>"x"&'\u202e\u0000`)).toBe(
      "&lt;/title&gt;&lt;script&gt;&quot;x&quot;&amp;&#39;⟨U+202E⟩⟨U+0000⟩",
    );
    const hostile = { name: "</script><!--\u2028" };
    expect(scriptJson(hostile)).not.toMatch(/[<>\u2028]/);
    expect(JSON.parse(scriptJson(hostile))).toEqual(hostile);
  });

  it("tells what was asked, of how many nodes, and how good the data is", () => {
    const facts = Object.fromEntries(factsOfWindow(answerOf([{ name: "a", self: 10 }])));
    expect(facts.Window).toContain("1970-01-01T00:00:00.000Z to 1970-01-01T00:00:10.000Z");
    expect(facts.Observed).toMatch(/^1 node, 20\.0.s of CPU time observed/);
    expect(facts.Stacks).toBe("10 complete, 0 truncated, 0 unsymbolized, none lost");
    expect(facts.Samples).toMatch(/^10 samples, 500.ms of CPU time/);
    const preceding = Object.fromEntries(factsOfPreceding(answerOf([{ name: "a", self: 10 }]), 100, "net_rx\u202e"));
    expect(preceding["Preceding samples"]).toMatch(
      /^on the same CPU, up to 100.ms before samples with net_rx⟨U\+202E⟩; each counts once$/,
    );
    expect(preceding.Samples).toMatch(/^10 samples/);
    const pair = Object.fromEntries(factsOfPair(diffOf([{ name: "a", self: 10, before: 2 }])));
    expect(pair["A: samples"]).toMatch(/^2 samples/);
    expect(pair["B: samples"]).toMatch(/^10 samples/);
    expect(pair.Judged).toMatch(/^by absolute, total; .*; 95.% CI; false discovery rate/);
  });

  it("says that who ended waits is left out, where that stands above them", () => {
    const shown = { woken: true, type: "off_cpu", pane: "both" };
    const told = [["Left out", "the graph above: who ended these waits"]];
    expect(factsOfWoken(shown)).toEqual(told);
    expect(factsOfWoken({ ...shown, pane: "graph" })).toEqual(told);
    for (const other of [{ woken: false }, { type: "run_queue" }, { pane: "table" }, { pane: "tree" }])
      expect(factsOfWoken({ ...shown, ...other })).toEqual([]);
  });
});
