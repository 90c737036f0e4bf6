import { afterEach, describe, expect, it } from "vitest";
import { levelTicks, timeTicks } from "./ticks.ts";
import { clock, rangeText, tickLabels, zoneOf, zoneText } from "./time.ts";
import { followZone, isTwice } from "./zone.ts";

describe("labels of an axis", () => {
  it("stand at round times within the range", () => {
    const { ticks, stepMs } = timeTicks(1_000_300, 1_010_000, 10);
    expect(stepMs).toBe(1_000);
    expect(ticks[0]).toBe(1_001_000);
    expect(ticks.at(-1)).toBe(1_010_000);
    expect(timeTicks(0, 5, 5).ticks).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("are not more than there is room for, however long the range is", () => {
    const year = 365 * 86_400_000;
    for (const length of [1, 50, 7_000, 86_400_000, 20 * year]) {
      expect(timeTicks(1_700_000_000_000, 1_700_000_000_000 + length, 6).ticks.length).toBeLessThanOrEqual(7);
    }
  });

  it("stand at round levels from zero", () => {
    expect(levelTicks(2.12, 5)).toEqual([0, 0.5, 1, 1.5, 2]);
    expect(levelTicks(0.3, 3)).toEqual([0, 0.1, 0.2, 0.3]);
    expect(levelTicks(64, 5)).toEqual([0, 20, 40, 60]);
    expect(levelTicks(1, 0)).toEqual([0, 1]);
    expect(levelTicks(0.0004, 4)).toEqual([0, 0.0001, 0.0002, 0.0003, 0.0004]);
  });
});

describe("a time axis across a change of the clocks", () => {
  const own = process.env.TZ;
  afterEach(() => {
    if (own === undefined) Reflect.deleteProperty(process.env, "TZ");
    else process.env.TZ = own;
  });
  /** The zone's clocks go forward and back on these days of 2026. */
  const ZONES = [
    ["Europe/Berlin", "2026-03-29", "2026-10-25"],
    ["America/New_York", "2026-03-08", "2026-11-01"],
    // By half an hour.
    ["Australia/Lord_Howe", "2026-10-04", "2026-04-05"],
  ] as const;
  const HOUR = 3_600_000;
  const DAY = 24 * HOUR;

  for (const [zone, ...days] of ZONES) {
    it(`has its labels at round times of ${zone}, each day once`, () => {
      process.env.TZ = zone;
      for (const day of days) {
        const noon = Date.parse(`${day}T12:00:00Z`);
        for (const [length, most] of [
          [10, 11],
          [1.5, 18],
          [2, 8],
          [4, 8],
          [8, 8],
          [60, 9],
        ] as const) {
          const range = { from: noon - (length * DAY) / 2, until: noon + (length * DAY) / 2 };
          const { ticks, stepMs } = timeTicks(range.from, range.until, most);
          const labels = tickLabels(ticks, stepMs);
          expect(ticks.length).toBeGreaterThan(most / 3);
          expect(
            ticks.every((tick, i) => tick >= range.from && tick <= range.until && tick > (ticks[i - 1] ?? 0)),
          ).toBe(true);
          for (const tick of ticks) {
            const [hour, minute] = clock(tick).split(":").map(Number) as [number, number];
            expect((hour * 60 + minute) % Math.min(24 * 60, stepMs / 60_000)).toBe(0);
          }
          const named = labels.filter((label) => / [A-Z][a-z]{2}/.test(label));
          expect(new Set(named).size).toBe(named.length);
          const midnights = Array.from({ length: Math.floor(length) }, (_, i) =>
            new Date(range.from + (i + 1) * DAY).getDate(),
          );
          if (stepMs <= DAY) expect(named.length).toBeGreaterThanOrEqual(midnights.length - 1);
        }
      }
    });
  }

  it("says which of two equal hours is meant, and which zone it has", () => {
    process.env.TZ = "Europe/Berlin";
    const from = Date.parse("2026-10-25T00:00:00+02:00");
    const { ticks, stepMs } = timeTicks(from, from + 5 * HOUR, 6);
    expect(tickLabels(ticks, stepMs)).toEqual(["00:00", "01:00", "02:00", "02:00 UTC+1", "03:00", "04:00"]);
    const halfPast = from + 2.5 * HOUR;
    expect(rangeText({ from: halfPast, until: halfPast + HOUR }, halfPast)).toBe("02:30 UTC+2 – 02:30 UTC+1");
    expect(zoneText({ from, until: from + 5 * HOUR })).toBe("UTC+2, then UTC+1");
    expect(zoneOf(Date.parse("2026-01-01T00:00:00Z"))).toBe("UTC+1");
    // Both ends lie in an hour that comes twice.
    const second = { from: halfPast + HOUR, until: halfPast + HOUR + 600_000 };
    expect(rangeText(second, halfPast)).toBe("02:30:00 UTC+1 – 02:40:00 UTC+1");
    process.env.TZ = "America/St_Johns";
    expect(zoneOf(Date.parse("2026-01-01T00:00:00Z"))).toBe("UTC-3:30");
    process.env.TZ = "UTC";
    expect(zoneText({ from, until: from + DAY })).toBe("UTC");
  });

  it("tells every range in words of its own, with two ends, in each zone", () => {
    for (const [zone, ...days] of ZONES) {
      process.env.TZ = zone;
      for (const day of days) {
        const noon = Date.parse(`${day}T12:00:00Z`);
        for (const length of [HOUR, 2 * HOUR, DAY]) {
          const starts = Array.from({ length: 96 }, (_, i) => noon - DAY + (i * HOUR) / 2);
          const texts = starts.map((from) => rangeText({ from, until: from + length }, noon));
          expect(new Set(texts).size).toBe(texts.length);
          for (const text of texts) {
            const [begin, end] = text.split(" – ");
            expect(end).not.toBe(begin);
          }
        }
      }
    }
  });

  it("knows which times come twice, to the minute", () => {
    for (const [zone, , back] of ZONES.map(([name, forward, day]) => [name, forward, day] as const)) {
      process.env.TZ = zone;
      const noon = Date.parse(`${back}T12:00:00Z`);
      const times = Array.from({ length: 48 * 60 }, (_, i) => noon - DAY + i * 60_000);
      const seen = new Map<string, number>();
      for (const at of times) {
        const key = new Date(at).toString().slice(0, 21);
        seen.set(key, (seen.get(key) ?? 0) + 1);
      }
      for (const at of times) expect(isTwice(at)).toBe(seen.get(new Date(at).toString().slice(0, 21)) === 2);
    }
  });

  it("is of UTC where that is chosen: days of 24 hours, whatever the clocks of the browser do", () => {
    followZone(() => "utc");
    try {
      for (const [zone, ...days] of ZONES) {
        process.env.TZ = zone;
        for (const day of days) {
          const from = Date.parse(`${day}T00:00:00Z`) - DAY;
          const { ticks, stepMs } = timeTicks(from, from + 3 * DAY, 4);
          expect(ticks).toEqual([from, from + DAY, from + 2 * DAY, from + 3 * DAY]);
          expect(new Set(tickLabels(ticks, stepMs)).size).toBe(4);
          expect(zoneText({ from, until: from + 3 * DAY })).toBe("UTC");
          expect(clock(from + 5 * HOUR)).toBe("05:00:00");
          expect(rangeText({ from, until: from + HOUR }, from)).toBe("00:00 – 01:00");
        }
      }
    } finally {
      followZone(() => "local");
    }
  });
});
