import { describe, expect, it } from "vitest";
import { dateText, parseTime, rangeText, tickLabels } from "./time.ts";

describe("times", () => {
  it("reads every form that the API takes", () => {
    expect(parseTime("now", 5)).toBe(5);
    expect(parseTime("now-90s", 100_000)).toBe(10_000);
    expect(parseTime("1700000000000", 0)).toBe(1_700_000_000_000);
    expect(parseTime("2026-11-21T08:00:00Z", 0)).toBe(Date.UTC(2026, 10, 21, 8));
    expect(parseTime("yesterday", 0)).toBeNull();
    expect(parseTime("now-1y", 0)).toBeNull();
  });

  it("writes a moment to the millisecond", () => {
    expect(dateText(new Date(2026, 2, 4, 5, 6, 7).getTime())).toBe("2026-03-04 05:06:07");
    expect(dateText(new Date(2026, 2, 4, 5, 6, 7, 89).getTime())).toBe("2026-03-04 05:06:07.089");
  });

  it("names the day of a range where it is another one, and the year", () => {
    const at = (year: number, month: number, day: number) => new Date(year, month, day, 12).getTime();
    const now = at(2026, 10, 23);
    expect(rangeText({ from: now - 60_000, until: now }, now)).toBe("11:59:00 – 12:00:00");
    expect(rangeText({ from: at(2026, 10, 21), until: now }, now)).toBe("21 Nov 12:00 – 23 Nov 12:00");
    expect(rangeText({ from: at(2023, 10, 14), until: at(2023, 10, 14) + 7_200_000 }, now)).toBe(
      "14 Nov 2023 12:00 – 14:00",
    );
    expect(rangeText({ from: at(2025, 11, 31), until: at(2026, 0, 1) }, now)).toBe("31 Dec 2025 12:00 – 1 Jan 12:00");
  });

  it("labels ticks as finely as they stand", () => {
    const at = (h: number, m: number, s = 0) => new Date(2026, 10, 21, h, m, s).getTime();
    expect(tickLabels([at(8, 0), at(8, 5)], 300_000)).toEqual(["08:00", "08:05"]);
    expect(tickLabels([at(8, 0), at(8, 0, 10)], 10_000)).toEqual(["08:00:00", "08:00:10"]);
    expect(tickLabels([at(18, 0), at(24, 0)], 21_600_000)).toEqual(["18:00", "22 Nov"]);
  });
});
