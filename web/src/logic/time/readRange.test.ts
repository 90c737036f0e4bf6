import { afterEach, describe, expect, it } from "vitest";
import { EXAMPLES, rangeInput, readRange } from "./readRange.ts";
import { followZone } from "./zone.ts";

const own = process.env.TZ;
afterEach(() => {
  followZone(() => "local");
  if (own === undefined) Reflect.deleteProperty(process.env, "TZ");
  else process.env.TZ = own;
});

const NOW = Date.parse("2026-11-27T12:00:00Z");
const ms = (text: string) => String(Date.parse(text));
const ends = (text: string, now = NOW) => {
  const read = readRange(text, now);
  return "fault" in read ? read.fault : [read.from, read.until];
};
const fault = (text: string, now = NOW) => {
  const read = readRange(text, now);
  return "fault" in read ? read.fault : `no fault: ${JSON.stringify(read)}`;
};

describe("a range that is typed", () => {
  it("follows the present where it says so", () => {
    expect(ends("now-2h")).toEqual(["now-2h", "now"]);
    expect(ends(" now-1h to now ")).toEqual(["now-1h", "now"]);
    expect(ends("now-3h – now-30m")).toEqual(["now-3h", "now-30m"]);
    expect(ends("now-1h30m")).toEqual(["now-90m", "now"]);
    expect(ends("2h")).toEqual(["now-2h", "now"]);
    expect(ends("last 14 d")).toEqual(["now-2w", "now"]);
    expect(ends("now-90min")).toEqual(["now-90m", "now"]);
  });

  it("takes RFC 3339 with and without zone, and Unix time", () => {
    process.env.TZ = "America/New_York";
    expect(ends("2026-11-27T10:00:00Z to 2026-11-27T10:30:00.250+00:00")).toEqual([
      ms("2026-11-27T10:00:00Z"),
      ms("2026-11-27T10:30:00.250Z"),
    ]);
    expect(ends("2026-11-27 05:00 to 2026-11-27 05:30")).toEqual([
      ms("2026-11-27T05:00-05:00"),
      ms("2026-11-27T05:30-05:00"),
    ]);
    expect(ends("2026-11-27T05:00/2026-11-27T05:30")).toEqual(ends("2026-11-27 05:00 - 2026-11-27 05:30"));
    expect(ends("2026-11-27 10:00 UTC to 10:20 UTC")).toEqual([ms("2026-11-27T10:00Z"), ms("2026-11-27T10:20Z")]);
    expect(ends("2026-11-27 10:00 +0530 .. now")).toEqual([ms("2026-11-27T10:00+05:30"), "now"]);
    expect(ends("1795777200 to 1795777260.5")).toEqual(["1795777200000", "1795777260500"]);
    expect(ends("1795777200000 to now")).toEqual(["1795777200000", "now"]);
  });

  it("places times of day where they last were", () => {
    process.env.TZ = "Europe/Berlin";
    expect(ends("10:30 to 11:15")).toEqual([ms("2026-11-27T10:30+01:00"), ms("2026-11-27T11:15+01:00")]);
    expect(ends("23:30 to 23:45")).toEqual([ms("2026-11-26T23:30+01:00"), ms("2026-11-26T23:45+01:00")]);
    expect(ends("23:30 to 00:15")).toEqual([ms("2026-11-26T23:30+01:00"), ms("2026-11-27T00:15+01:00")]);
    expect(ends("23:30")).toEqual([ms("2026-11-26T23:30+01:00"), "now"]);
    expect(ends("1:22:36 AM to 1:30 am")).toEqual([ms("2026-11-27T01:22:36+01:00"), ms("2026-11-27T01:30+01:00")]);
    expect(ends("2026-11-20 23:50 to 00:10")).toEqual([ms("2026-11-20T23:50+01:00"), ms("2026-11-21T00:10+01:00")]);
    followZone(() => "utc");
    expect(ends("10:30 to 11:15")).toEqual([ms("2026-11-27T10:30Z"), ms("2026-11-27T11:15Z")]);
  });

  it("says what is wrong and what is allowed", () => {
    expect(fault("")).toContain("Unix seconds or milliseconds");
    expect(fault("soon")).toBe(
      "“soon” is no time that is known here. Give now-2h, a time of day, a date with or without time and zone, " +
        "or Unix seconds or milliseconds.",
    );
    expect(fault("now-2y")).toContain("ms, s, m, h, d or w");
    expect(fault("12345")).toContain("10 digits");
    expect(fault("2026-02-30")).toBe("There is no day 2026-02-30.");
    expect(fault("25:00 to 26:00")).toContain("hours go to 24");
    expect(fault("now to now-1h")).toContain("is not before the end");
    expect(fault("2027-01-01T00:00Z")).toContain("in the future");
    expect(fault("now-500d")).toBe("A range has at most 400 days.");
    expect(fault("1:00 to 2:00 to 3:00")).toContain("more than two times");
    expect(fault("to now")).toContain("no time");
    expect(fault("10:00 to ")).toContain("no time");
  });

  it("reads each of its own examples, and what it shows of a range", () => {
    const now = Date.parse("2026-11-27T20:00:00Z");
    for (const example of EXAMPLES) expect(fault(example, now)).toContain("no fault");
    const window = { from: NOW - 3_600_123, until: NOW };
    const shown = rangeInput({ from: String(window.from), until: String(window.until) }, window, NOW);
    expect(ends(shown)).toEqual([String(window.from), String(window.until)]);
    expect(rangeInput({ from: "now-15m", until: "now" }, window, NOW)).toBe("now-15m to now");
  });
});

describe("a range across a change of the clocks", () => {
  /** Zone, the day on which clocks go forward, a time that they leave out, the day on which they go back, one twice. */
  const ZONES = [
    ["Europe/Berlin", "2026-03-29", "02:30", "2026-10-25", "02:30", ["+02:00", "+01:00"]],
    ["America/New_York", "2026-03-08", "02:30", "2026-11-01", "01:30", ["-04:00", "-05:00"]],
    ["Australia/Lord_Howe", "2026-10-04", "02:15", "2026-04-05", "01:45", ["+11:00", "+10:30"]],
  ] as const;

  for (const [zone, forward, missing, back, twice, [first, second]] of ZONES) {
    it(`has whole days and no time that is not there in ${zone}`, () => {
      process.env.TZ = zone;
      const length = (day: string) => {
        const read = readRange(day, NOW);
        return "fault" in read ? read.fault : Number(read.until) - Number(read.from);
      };
      const change = Math.abs(Date.parse(`${back}T12:00${second}`) - Date.parse(`${back}T12:00${first}`));
      expect(length(forward)).toBe(24 * 3_600_000 - change);
      expect(length(back)).toBe(24 * 3_600_000 + change);
      expect(fault(`${forward} ${missing} to now`)).toContain(`Clocks leave out ${forward} ${missing}`);
      expect(fault(`${forward}T${missing}Z to now`)).toContain("no fault");
      // Of two equal times the first is meant, unless the zone says which.
      expect(ends(`${back} ${twice} to now`)).toEqual([ms(`${back}T${twice}${first}`), "now"]);
      expect(ends(`${back} ${twice} ${second} to now`)).toEqual([ms(`${back}T${twice}${second}`), "now"]);
      // What the field shows of either leads back to it.
      for (const offset of [first, second]) {
        const window = { from: Date.parse(`${back}T${twice}${offset}`), until: Date.parse(`${back}T12:00${second}`) };
        const texts = { from: String(window.from), until: String(window.until) };
        expect(ends(rangeInput(texts, window, NOW))).toEqual([texts.from, texts.until]);
      }
    });
  }
});
