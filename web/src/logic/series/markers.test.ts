import { describe, expect, it } from "vitest";
import type { Marker } from "../../api/types.ts";
import { groupMarkers, kindsText } from "./markers.ts";

const marker = (time: number, kind: Marker["kind"] = "note"): Marker => ({
  ...{ id: String(time), kind, time, title: "", text: "", labels: {} },
});

describe("markers on an axis", () => {
  it("stand at their moments, in the order of time, and only those in sight", () => {
    const groups = groupMarkers(
      [marker(900), marker(100), marker(-5), marker(1001)],
      { from: 0, until: 1000 },
      500,
      24,
    );
    expect(groups.map(({ x }) => x)).toEqual([50, 450]);
  });

  it("are groups where they are dense, with none lost, and far enough apart to be hit", () => {
    const many = Array.from({ length: 10_000 }, (_, i) => marker((i * 7919) % 1_000_000));
    const groups = groupMarkers(many, { from: 0, until: 1_000_000 }, 1300, 24);
    expect(groups.reduce((sum, { markers }) => sum + markers.length, 0)).toBe(10_000);
    expect(groups.length).toBeLessThanOrEqual(55);
    expect(groups.length).toBeGreaterThan(40);
    for (const [i, { x }] of groups.entries()) if (i > 0) expect(x - (groups[i - 1]?.x ?? 0)).toBeGreaterThan(11);
    expect(kindsText([marker(1, "version"), marker(2), marker(3), marker(4, "agent")])).toBe(
      "1 version, 1 agent start, 2 notes",
    );
  });
});
