import { describe, expect, it } from "vitest";
import type { Marker, OlderMarkers } from "../../api/types.ts";
import { countsOf, groupMarkers, isNarrower, kindsText, momentsBeside, numberOf, olderSpans } from "./markers.ts";

const marker = (time: number, kind: Marker["kind"] = "note", service = ""): Marker => ({
  ...{ id: String(time), kind, time, title: "", text: "", labels: service === "" ? {} : { service } },
});

const step = (from: number, counts: OlderMarkers["counts"]): OlderMarkers => ({ from, until: from + 100, counts });

describe("markers on an axis", () => {
  it("stand at their moments, in the order of time, and only those in sight", () => {
    const groups = groupMarkers(
      [marker(900), marker(100), marker(-5), marker(1001)],
      [],
      { from: 0, until: 1000 },
      500,
      24,
    );
    expect(groups.map(({ x }) => x)).toEqual([50, 450]);
    expect(groups.map(({ from, until }) => [from, until])).toEqual([
      [100, 101],
      [900, 901],
    ]);
  });

  it("are groups where they are dense, with none lost, and far enough apart to be hit", () => {
    const many = Array.from({ length: 10_000 }, (_, i) => marker((i * 7919) % 1_000_000));
    const groups = groupMarkers(many, [], { from: 0, until: 1_000_000 }, 1300, 24);
    expect(groups.reduce((sum, { markers }) => sum + markers.length, 0)).toBe(10_000);
    expect(groups.length).toBeLessThanOrEqual(55);
    expect(groups.length).toBeGreaterThan(40);
    for (const [i, { x }] of groups.entries()) if (i > 0) expect(x - (groups[i - 1]?.x ?? 0)).toBeGreaterThan(11);
    const few = [marker(1, "version"), marker(2), marker(3), marker(4, "agent")];
    expect(kindsText(countsOf(few, []))).toBe("1 version, 1 agent start, 2 notes");
  });

  it("that are counted only have signs amid their steps, and no sign leaves any out", () => {
    const older = [step(0, { note: 700, version: 2 }), step(100, { agent: 1 }), step(800, { note: 4 })];
    const groups = groupMarkers([marker(840), marker(960)], older, { from: 0, until: 1000 }, 1000, 24);
    // The last step's middle is 850, within 24 pixels of the marker at 840.
    expect(groups.map(({ x, number, older: rest, markers }) => [x, number, rest, markers.length])).toEqual([
      [50, 702, 702, 0],
      [150, 1, 1, 0],
      [845, 5, 4, 1],
      [960, 1, 0, 1],
    ]);
    expect(groups[2]).toMatchObject({ from: 800, until: 900 });
    expect(groups[0]?.counts).toEqual({ note: 700, version: 2, agent: 0, burst: 0 });
    expect(numberOf(countsOf([marker(840), marker(960)], older))).toBe(709);
  });
});

describe("markers that are counted only", () => {
  // 20 steps of 500: at most four of them are told at once where there is room for 2,000.
  const older = Array.from({ length: 20 }, (_, i) => step(i * 100, { note: 499, version: 1 }));

  it("lie in times that can be told at once, together all of them", () => {
    const spans = olderSpans(older, 2_000, 12);
    expect(spans.map(({ from, until, number }) => [from, until, number])).toEqual([
      [0, 400, 2_000],
      [400, 800, 2_000],
      [800, 1_200, 2_000],
      [1_200, 1_600, 2_000],
      [1_600, 2_000, 2_000],
    ]);
    expect(kindsText(spans[0]?.counts ?? countsOf([], []))).toMatch(/^4 versions, 1.996 notes$/);
  });

  it("lie in fewer and longer times where there would be too many, and a large step in one of its own", () => {
    expect(olderSpans(older, 2_000, 3).map(({ number }) => number)).toEqual([4_000, 4_000, 2_000]);
    expect(olderSpans(older, 2_000, 0).map(({ number }) => number)).toEqual([10_000]);
    const uneven = [step(0, { note: 10 }), step(100, { note: 9_000 }), step(200, { note: 20 })];
    expect(olderSpans(uneven, 2_000, 12).map(({ number }) => number)).toEqual([10, 9_000, 20]);
    expect(olderSpans([], 2_000, 12)).toEqual([]);
  });

  it("lie in times that are shorter than what is shown, however few they are", () => {
    const ends = [step(0, { note: 10 }), step(900, { note: 20 })];
    expect(olderSpans(ends, 2_000, 12)).toHaveLength(1);
    const halves = [
      { from: 0, until: 100, number: 10 },
      { from: 900, until: 1_000, number: 20 },
    ];
    expect(olderSpans(ends, 2_000, 12, 500)).toMatchObject(halves);
    expect(olderSpans(ends, 2_000, 1, 500)).toMatchObject(halves);
  });

  it("lead to a shorter time, unless what is shown is as short already", () => {
    expect(isNarrower({ from: 0, until: 5_000 }, { from: 0, until: 60_000 })).toBe(true);
    expect(isNarrower({ from: 0, until: 10 }, { from: 0, until: 1_000 })).toBe(false);
  });

  it("bound the windows around a marker by the steps that have versions", () => {
    const at = marker(1_050, "version", "shop");
    const told = [at, marker(1_500, "version", "shop"), marker(1_200, "version", "db"), marker(1_100)];
    const counted = [step(0, { note: 1 }), step(100, { version: 1 }), step(1_000, { version: 2 })];
    expect(momentsBeside(at, told, counted)).toEqual([1_500, 200, 1_000, 1_100]);
  });
});
