import { describe, expect, it } from "vitest";
import type { TimelineAnswer } from "../../api/types.ts";
import { laneOf } from "../labels/selector.ts";
import { frameName, ROOT, type Tree } from "../tree/tree.ts";
import { rowRuns } from "./layout.ts";
import {
  boxAtPlace,
  boxPlace,
  chartOf,
  clamped,
  deepestWithin,
  hitsOf,
  isOneLane,
  lanesOf,
  momentText,
  panned,
  ranBefore,
  reaching,
  sampleFrom,
  showing,
  whoIn,
  zoomed,
} from "./timeline.ts";

const MS = 1e6;

interface Taken {
  at: number;
  /** Index of the leaf: 0 all, 1 main, 2 main;work, 3 main;work;read, 4 main;idle_loop. */
  leaf: number;
  tid?: number;
  cpu?: number;
  node?: string;
}

function answer(taken: Taken[], complete = true): TimelineAnswer {
  const of = <T>(get: (one: Taken) => T) => taken.map(get);
  return {
    type: "cpu",
    query: '{cpu="0"}',
    from: 0,
    until: 1_000,
    complete,
    strings: ["", "all", "main", "work", "read", "idle_loop", "app"],
    kinds: ["root", "kernel", "native"],
    languages: ["", "", ""],
    nodes: {
      parent: [-1, 0, 1, 2, 1],
      name: [1, 2, 3, 4, 5],
      module: [0, 6, 6, 6, 6],
      kind: [0, 2, 2, 1, 2],
      inlined: [0, 0, 0, 0, 0],
      total: [0, 0, 0, 0, 0],
      self: [0, 0, 0, 0, 0],
    },
    samples: {
      offset_ns: of(({ at }) => at * MS),
      node: of(({ node }) => node ?? "a"),
      cpu: of(({ cpu }) => cpu ?? 0),
      tid: of(({ tid }) => tid ?? 7),
      tgid: of(() => "7"),
      service: of(() => "s"),
      thread: of(({ tid }) => `t${tid ?? 7}`),
      mode: of(() => "user"),
      value_ns: of(() => 10 * MS),
      stack: of(({ leaf }) => leaf),
    },
  };
}

/** Every box as `name from-until ms xSAMPLES`, by depth. */
function drawn(tree: Tree): string[] {
  return Array.from({ length: tree.size }, (_, i) => {
    const [start, weight] = [tree.start[i] as number, tree.weight[i] as number];
    return `${tree.depth[i]} ${frameName(tree, i)} ${start / MS}-${(start + weight) / MS} x${tree.total[i]}`;
  });
}

describe("samples as a flame chart", () => {
  it("draws what went on as one box, and what was idle as a gap", () => {
    const { tree } = chartOf(
      answer([
        { at: 100, leaf: 2 },
        { at: 111, leaf: 3 },
        { at: 120, leaf: 4 },
        { at: 200, leaf: 4 },
      ]),
    );
    expect(drawn(tree)).toEqual([
      "0 all 0-1000 x4",
      "1 t7 (7) 100-130 x3",
      "2 main 100-130 x3",
      "3 work 100-120 x2",
      "4 read 111-120 x1",
      "3 idle_loop 120-130 x1",
      "1 t7 (7) 200-210 x1",
      "2 main 200-210 x1",
      "3 idle_loop 200-210 x1",
    ]);
    expect(tree.end[1]).toBe(6);
    expect(tree.self[3]).toBe(1);
    expect(rowRuns(tree, 3, { from: 100 * MS, until: 130 * MS }, 30).map(({ left, right }) => [left, right])).toEqual([
      [0, 20],
      [20, 30],
    ]);
  });

  it("parts what another thread did on the same CPU, and names CPUs under a thread", () => {
    const threads = chartOf(
      answer([
        { at: 0, leaf: 1 },
        { at: 10, leaf: 1, tid: 8 },
      ]),
    ).tree;
    expect(drawn(threads)).toContain("1 t8 (8) 10-20 x1");
    const moved = chartOf(
      answer([
        { at: 0, leaf: 1 },
        { at: 10, leaf: 1, cpu: 3 },
      ]),
    ).tree;
    expect(drawn(moved)).toEqual([
      "0 all 0-1000 x2",
      "1 CPU 0 0-10 x1",
      "2 main 0-10 x1",
      "1 CPU 3 10-20 x1",
      "2 main 10-20 x1",
    ]);
  });

  it("reaches no further than an answer that was cut", () => {
    expect(
      chartOf(
        answer(
          [
            { at: 0, leaf: 1 },
            { at: 40, leaf: 1 },
          ],
          false,
        ),
      ).extentNs,
    ).toBe(50 * MS);
    expect(chartOf(answer([])).extentNs).toBe(1_000 * MS);
    // Waits reach to 400 ms: of a whole answer that says nothing, of its first part that is how far it goes.
    expect(reaching(chartOf(answer([])), 400 * MS).extentNs).toBe(1_000 * MS);
    expect(reaching(chartOf(answer([], false)), 400 * MS).extentNs).toBe(400 * MS);
    expect(reaching(chartOf(answer([{ at: 5, leaf: 1 }], false)), 400 * MS).extentNs).toBe(400 * MS);
  });

  it("finds frames, not the names of threads, and the samples that have one", () => {
    const chart = chartOf(
      answer([
        { at: 0, leaf: 3 },
        { at: 10, leaf: 4 },
        { at: 20, leaf: 2 },
      ]),
    );
    const { search, samples } = hitsOf(chart, {
      matcher: (name) => name === "work" || name.startsWith("t7"),
      plain: null,
    });
    expect(samples).toEqual([0, 2]);
    expect([...chart.tree.name.keys()].filter((box) => search.hits.has(box))).toHaveLength(2);
    expect(chart.tree.levels[1]?.some((box) => search.hits.has(box))).toBe(false);
    expect(search.hits.has(ROOT)).toBe(false);
  });

  it("names a box by a moment and its row, and finds it again", () => {
    const from = 1_763_713_380_123;
    const chart = chartOf(
      answer([
        { at: 0, leaf: 3 },
        { at: 10, leaf: 3 },
        { at: 20, leaf: 2, tid: 8, cpu: 0 },
        { at: 400, leaf: 4 },
      ]),
    );
    for (let box = 1; box < chart.tree.size; box++)
      expect(boxAtPlace(chart, from, boxPlace(chart, from, box))).toBe(box);
    expect(boxPlace(chart, from, 1)).toBe("1763713380133-1");
    // Between samples nothing is, nor in rows that the stack does not reach.
    expect(boxAtPlace(chart, from, `${from + 200}-1`)).toBeNull();
    expect(boxAtPlace(chart, from, `${from + 5}-9`)).toBeNull();
    for (const bad of ["", "x", "-1", "1-", "1e9-2"]) expect(boxAtPlace(chart, from, bad)).toBeNull();
  });

  it("tells who ran in a box", () => {
    const chart = chartOf(
      answer([
        { at: 0, leaf: 3 },
        { at: 10, leaf: 2, tid: 8, cpu: 0, node: "b" },
      ]),
    );
    const [first, second] = [...(chart.tree.levels[1] ?? [])] as [number, number];
    expect(whoIn(chart, first)).toEqual({ node: "a", cpu: "0", tid: "7", thread: "t7" });
    expect(whoIn(chart, second)).toEqual({ node: "b", cpu: "0", tid: "8", thread: "t8" });
  });

  it("counts who ran shortly before a hit, each sample once and no hit itself", () => {
    const chart = chartOf(
      answer([
        { at: 0, leaf: 1, tid: 1 },
        { at: 60, leaf: 1, tid: 2 },
        { at: 70, leaf: 1, tid: 2 },
        { at: 80, leaf: 3, tid: 9 },
        { at: 90, leaf: 1, tid: 3 },
        { at: 100, leaf: 3, tid: 9 },
        { at: 110, leaf: 1, tid: 4 },
      ]),
    );
    const { samples } = hitsOf(chart, { matcher: (name) => name === "read", plain: null });
    expect(samples).toEqual([3, 5]);
    const within = (ms: number) => ranBefore(chart, samples, ms * MS).map(({ thread, samples: n }) => [thread, n]);
    expect(within(25)).toEqual([
      ["t2", 2],
      ["t3", 1],
    ]);
    expect(within(80)).toEqual([
      ["t2", 2],
      ["t1", 1],
      ["t3", 1],
    ]);
    expect(within(5)).toEqual([]);
    // A thread is not offered for what it ran before its own hit, but for what it ran before another thread's.
    const own = chartOf(
      answer([
        { at: 0, leaf: 1, tid: 9 },
        { at: 10, leaf: 3, tid: 9 },
        { at: 20, leaf: 1, tid: 8 },
        { at: 30, leaf: 3, tid: 9 },
        { at: 40, leaf: 3, tid: 8 },
      ]),
    );
    const hits = [1, 3, 4];
    expect(ranBefore(own, hits, 20 * MS).map(({ tid, samples: n }) => [tid, n])).toEqual([["8", 1]]);
    expect(ranBefore(own, hits, 40 * MS).map(({ tid, samples: n }) => [tid, n])).toEqual([
      ["9", 1],
      ["8", 1],
    ]);
    expect(ranBefore(own, [], 40 * MS)).toEqual([]);
    // Threads of one name count together; the one with most stands for them.
    const pool = { ...chart, samples: { ...chart.samples, thread: chart.samples.thread.map(() => "worker") } };
    expect(ranBefore(pool, samples, 80 * MS)).toEqual([{ service: "s", thread: "worker", tid: "2", samples: 4 }]);
  });

  it("says how deep stacks in sight are", () => {
    const chart = chartOf(
      answer([
        { at: 0, leaf: 3 },
        { at: 500, leaf: 1 },
      ]),
    );
    expect(deepestWithin(chart, { from: 0, until: 100 * MS })).toBe(4);
    expect(deepestWithin(chart, { from: 600 * MS, until: 700 * MS })).toBe(2);
  });
});

describe("lanes", () => {
  it("are what a selector fixes", () => {
    expect(
      laneOf([
        { label: "node", operator: "=", value: "a" },
        { label: "cpu", operator: "=~", value: "1|2" },
      ]),
    ).toEqual({ node: "a", cpu: "", tid: "", thread: "" });
    expect(laneOf(null).node).toBe("");
  });

  it("are one when one CPU or one thread is left", () => {
    const { samples } = answer([
      { at: 0, leaf: 1 },
      { at: 1, leaf: 1, tid: 8 },
      { at: 2, leaf: 1, tid: 8, cpu: 1 },
    ]);
    const lanes = lanesOf(samples);
    expect(lanes.threads[0]).toEqual({ tid: "8", thread: "t8", samples: 2 });
    expect(lanes.cpus).toEqual([
      ["0", 2],
      ["1", 1],
    ]);
    expect(isOneLane(lanes)).toBe(false);
    expect(isOneLane({ ...lanes, cpus: [["0", 3]] })).toBe(true);
    expect(
      isOneLane({
        nodes: [
          ["a", 1],
          ["b", 1],
        ],
        cpus: [["0", 2]],
        threads: [],
      }),
    ).toBe(false);
  });
});

describe("what is in sight", () => {
  it("is never shorter than a millisecond nor outside of the answer", () => {
    expect(clamped({ from: -5, until: 5 }, 10 * MS)).toEqual({ from: 0, until: MS });
    expect(clamped({ from: 0, until: 99 * MS }, 10 * MS)).toEqual({ from: 0, until: 10 * MS });
    expect(panned({ from: 8 * MS, until: 9 * MS }, 5 * MS, 10 * MS)).toEqual({ from: 9 * MS, until: 10 * MS });
  });

  it("zooms around the pointer", () => {
    expect(zoomed({ from: 0, until: 8 * MS }, 0.5, 0.25, 8 * MS)).toEqual({ from: MS, until: 5 * MS });
    expect(zoomed({ from: 0, until: 8 * MS }, 4, 0.25, 8 * MS)).toEqual({ from: 0, until: 8 * MS });
  });

  it("moves only to what is not in sight", () => {
    const range = { from: 0, until: 2 * MS };
    expect(showing(range, MS, 10 * MS)).toBe(range);
    expect(showing(range, 5 * MS, 10 * MS)).toEqual({ from: 4 * MS, until: 6 * MS });
  });
});

it("finds samples by time, and writes moments as finely as they are looked at", () => {
  const { samples } = answer([
    { at: 1, leaf: 1 },
    { at: 5, leaf: 1 },
  ]);
  expect([0, 1, 2, 5, 6].map((ms) => sampleFrom(samples, ms * MS))).toEqual([0, 0, 1, 1, 2]);
  expect(momentText(1_000, 250.5 * MS, 1e9)).toMatch(/:01\.250$/);
  expect(momentText(1_000, 250.5 * MS, 1e6)).toMatch(/:01\.250500$/);
});
