import { describe, expect, it } from "vitest";
import type { DiffAnswer } from "../../api/types.ts";
import { gapsOf } from "../agents/loss.ts";
import { diffOf } from "../fixtures.ts";
import { caveatsOf } from "./caveats.ts";

const plain = (text: string) => text.replaceAll("\u202f", " ");

function answer(
  base: Partial<DiffAnswer["base"]>,
  comparison: Partial<DiffAnswer["base"]>,
  normalize = "rate" as const,
) {
  const diff = diffOf([{ name: "f", before: 100, self: 100 }]);
  const windows = { base: { from: 0, until: 60_000 }, comparison: { from: 60_000, until: 120_000 } };
  return {
    ...diff,
    normalize: normalize as DiffAnswer["normalize"],
    base: { ...diff.base, ...windows.base, ...base },
    comparison: { ...diff.comparison, ...windows.comparison, ...comparison },
  };
}

const said = (...parameters: Parameters<typeof caveatsOf>) => caveatsOf(...parameters).map(({ what }) => plain(what));
const { exposure, quality } = answer({}, {}).base;

describe("what speaks against a comparison", () => {
  it("is silent where nothing does", () => {
    expect(said(answer({}, {}), { base: ["0.1.0"], comparison: ["0.1.0"] })).toEqual([]);
    expect(
      said(answer({ samples: 0 }, { samples: 0, exposure: { ...exposure, gaps: [[60_000, 120_000]] } }), null),
    ).toEqual([]);
  });

  it("tells time without agents, and losses, of the side that has them", () => {
    const gaps: [number, number][] = [
      [0, 10_000],
      [50_000, 55_000],
    ];
    expect(
      said(answer({ exposure: { ...exposure, gaps } }, { quality: { ...quality, lost: { ring_full: 25 } } }), null),
    ).toEqual([
      "No agent covered 15.0 s of the 1 min of A",
      "B lost 25 samples (ring_full: 25; of what was taken and selected 20.0 %)",
    ]);
  });

  it("tells agents that covered only a part of a side's nodes", () => {
    const two = { exposure: { ...exposure, nodes: 2, node_share: 0.5 } };
    expect(said(answer(two, { exposure: { ...exposure, nodes: 2, node_share: 0.99 } }), null)).toEqual([
      "Agents covered the 2 nodes of A for 50.0 % of the time in the mean",
    ]);
  });

  it("tells sides of whose waits a part was observed", () => {
    const part = { exposure: { ...exposure, waits_share: 0.25 } };
    expect(said(answer({ exposure: { ...exposure, waits_share: 0.9999 } }, part), null)).toEqual([
      "Waits of B were observed for 25.0 % of the time",
    ]);
  });

  it("tells different rates, and the same mixture of rates", () => {
    const periods = [{ period_ns: 10_000_000, samples: 100 }];
    const mixed = [...periods, { period_ns: 50_000_000, samples: 100 }];
    expect(said(answer({}, { periods }), null)).toEqual(["A was sampled at 20.0 Hz, B at 100 Hz"]);
    expect(said(answer({ periods: mixed }, { periods: mixed }), null)).toEqual(["Both were sampled at 20.0 to 100 Hz"]);
    expect(said(answer({}, { periods: [], samples: 0 }), null)).toEqual([]);
  });

  it("tells lengths only where they matter, and shared time only of one selection", () => {
    const long = { from: 30_000, until: 120_000 };
    expect(said(answer({}, long), null)).toEqual(["A and B share 30.0 s"]);
    expect(said(answer({}, { ...long, query: '{mode="kernel"}' }), null)).toEqual([]);
    const absolute = { ...answer({}, { from: 60_000, until: 150_000 }), normalize: "absolute" as const };
    expect(said(absolute, null)).toEqual(["A is 1 min long, B 1 min 30 s"]);
    // What can be done is called as its control is.
    expect(caveatsOf(absolute, null)[0]?.so).toContain("choose Equal lengths");
  });

  it("takes what is left out of a side from its time", () => {
    const hour = { from: 0, until: 100_000 };
    const marked = { from: 40_000, until: 60_000 };
    const rest = { ...hour, except: [40_000, 60_000] as [number, number] };
    expect(said(answer(marked, rest), null)).toEqual([]);
    expect(said(answer(rest, marked), null)).toEqual([]);
    expect(said(answer({ from: 30_000, until: 60_000 }, rest), null)).toEqual(["A and B share 10.0 s"]);
    const gaps: [number, number][] = [[0, 20_000]];
    expect(said(answer(marked, { ...rest, exposure: { ...exposure, gaps } }), null)).toEqual([
      "No agent covered 20.0 s of the 1 min 20 s of B",
    ]);
    expect(said({ ...answer(marked, rest), normalize: "absolute" }, null)).toEqual(["A is 20.0 s long, B 1 min 20 s"]);
  });

  it("tells other nodes, other quality of stacks, other agents", () => {
    const worse = {
      exposure: { ...exposure, nodes: 3 },
      quality: { ...quality, truncated_samples: 12, unnamed_samples: 4 },
    };
    const unsymbolized = { quality: { ...quality, unnamed_samples: 40 } };
    expect(said(answer(unsymbolized, {}), null)).toEqual(["40.0 % unsymbolized stacks in A, 0 % in B"]);
    expect(said(answer({}, worse), { base: ["0.2.0", "0.1.0"], comparison: ["0.2.0"] })).toEqual([
      "A is of 1 node, B of 3",
      "0 % truncated stacks in A, 12.0 % in B",
      "Agents of A had version 0.1.0, 0.2.0, of B 0.2.0",
    ]);
  });
});

describe("time without agents", () => {
  const window = { from: 0, until: 900_000 };

  it("is what an answer lacks only where it lies between times that were covered", () => {
    expect(gapsOf({ gaps: [[0, 672_000]] }, window)).toEqual({ all: 672_000, inside: 0 });
    expect(gapsOf({ gaps: [[880_000, 900_000]] }, window)).toEqual({ all: 20_000, inside: 0 });
    const gaps: [number, number][] = [
      [0, 10_000],
      [100_000, 130_000],
      [890_000, 900_000],
    ];
    expect(gapsOf({ gaps }, window)).toEqual({ all: 50_000, inside: 30_000 });
    expect(gapsOf({ gaps: [] }, window)).toEqual({ all: 0, inside: 0 });
  });
});
