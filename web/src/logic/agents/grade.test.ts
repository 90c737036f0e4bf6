import { describe, expect, it } from "vitest";
import { faultsOf, gradeOf, type Seen } from "./grade.ts";

const window = { from: 0, until: 100_000 };

function seen(change: {
  gaps?: [number, number][];
  node_share?: number;
  lost?: Record<string, number>;
  missed_share?: number;
  waits_share?: number | null;
  truncated?: number;
}): Seen {
  return {
    window,
    samples: 1_000,
    exposure: {
      observed_cpu_seconds: 200,
      gaps: change.gaps ?? [],
      nodes: 2,
      node_share: change.node_share ?? 1,
      idle_share: 0.9,
      missed_share: change.missed_share ?? 0,
      ...(change.waits_share === undefined ? {} : { waits_share: change.waits_share }),
    },
    quality: {
      complete_samples: 1_000,
      truncated_samples: change.truncated ?? 0,
      unnamed_samples: 0,
      lost: change.lost ?? {},
    },
  };
}

const grade = (change: Parameters<typeof seen>[0]) => gradeOf(faultsOf(seen(change)));

describe("the grade of a window's data", () => {
  it("is good where time before the first agent, idle ticks and truncated stacks are all there is", () => {
    expect(grade({})).toBe("good");
    expect(grade({ gaps: [[0, 80_000]] })).toBe("good");
    expect(grade({ gaps: [[60_000, 100_000]] })).toBe("good");
    expect(grade({ missed_share: 0.3, truncated: 500 })).toBe("good");
  });

  it("asks to check a gap inside the window, losses, and gaps in the coverage of nodes", () => {
    expect(grade({ gaps: [[40_000, 50_000]] })).toBe("check");
    expect(grade({ lost: { ring_full: 3 } })).toBe("check");
    expect(grade({ node_share: 0.9 })).toBe("check");
  });

  it("is poor where much is missing", () => {
    expect(grade({ gaps: [[30_000, 60_000]] })).toBe("poor");
    expect(grade({ lost: { ring_full: 100 } })).toBe("poor");
    expect(grade({ node_share: 0.5 })).toBe("poor");
  });

  it("asks to check sums of waits that were observed for a part of the time", () => {
    expect(grade({ waits_share: null })).toBe("good");
    expect(grade({ waits_share: 0.999 })).toBe("good");
    expect(grade({ waits_share: 0.125 })).toBe("check");
    expect(faultsOf(seen({ waits_share: 0.125 })).map(({ text }) => text)).toEqual([
      "waits were observed for 12.5\u202f% of the time; their sums are extrapolated",
    ]);
  });

  it("says why", () => {
    expect(
      faultsOf(seen({ gaps: [[40_000, 50_000]], node_share: 0.8, lost: { ring_full: 3, slow: 4 } })).map(
        ({ text }) => text,
      ),
    ).toEqual(["a coverage gap of 10.0\u202fs", "coverage gaps in 20.0\u202f% of the nodes' time", "7 samples lost"]);
  });
});
