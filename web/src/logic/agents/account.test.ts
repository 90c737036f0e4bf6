import { describe, expect, it } from "vitest";
import { accountOf, limitsOf, ratesOf, refusalsOf } from "./account.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");

describe("limits", () => {
  it("are named with what they mean; one of a newer agent by its name alone", () => {
    const limits = limitsOf({ tables_late: 12_345, rate_lowered: 0, flux: 2 });
    expect(limits.reached).toBe(2);
    expect(plain(limits.brief)).toBe("tables_late 12.3 k, flux 2");
    expect(plain(limits.text)).toBe("tables_late: 12 345 stacks cut, since their unwind tables took too long\nflux: 2");
  });

  it("are few words where many were reached, and the text has all", () => {
    const limits = limitsOf({ rate_lowered: 3, tables_late: 700, stacks_not_copied: 11 });
    expect([limits.reached, limits.brief]).toEqual([3, "tables_late 700 and 2 more"]);
    expect(limits.text.split("\n")).toHaveLength(3);
  });

  it("are none where none was reached, or the agent does not tell", () => {
    expect(limitsOf(undefined)).toEqual({ reached: 0, brief: "", text: "" });
    expect(limitsOf({ rate_lowered: 0 })).toEqual(limitsOf({}));
  });
});

describe("the account of a node", () => {
  const of = (taken: number, stored: number, lost: Record<string, number>) =>
    plain(accountOf({ samples_taken: taken, samples_stored: stored, samples_lost: lost }));

  it("adds up", () => {
    expect(of(1_010, 1_000, { ring_full: 7, unsent: 3 })).toBe("1 010 taken = 1 000 stored + 10 lost");
  });

  it("says what is missing", () => {
    expect(of(1_010, 1_000, {})).toBe(
      "1 010 taken = 1 000 stored + 0 lost + 10 on their way, or older than the retention",
    );
  });
});

describe("rates", () => {
  it("are told only where they differ", () => {
    expect(ratesOf(undefined)).toBeNull();
    expect(ratesOf([{ period_ns: 50_000_000, samples: 7 }])).toBeNull();
    const rates = ratesOf([
      { period_ns: 50_000_000, samples: 900 },
      { period_ns: 200_000_000, samples: 1 },
    ]);
    expect(plain(rates?.brief ?? "")).toBe("5.00 to 20.0 Hz");
    expect(plain(rates?.text ?? "")).toContain("900 samples at 20.0 Hz, 1 sample at 5.00 Hz");
  });
});

describe("rates that are alike", () => {
  it("are told as one", () => {
    const periods = [
      { period_ns: 50_000_000, samples: 900 },
      { period_ns: 50_010_000, samples: 9 },
    ];
    expect(ratesOf(periods)).toBeNull();
    expect(ratesOf([...periods, { period_ns: 100_000_000, samples: 3 }])?.brief).toBe("10.0 to 20.0 Hz");
  });
});

describe("refusals", () => {
  it("are summed, with a line for each reason", () => {
    const refusals = [
      { reason: "bad_profile", count: 3, last: 0, message: "stack_table[9]" },
      { reason: "too_large", count: 1, last: 1000, message: "larger than 32" },
    ];
    expect(refusalsOf(refusals)).toEqual({
      count: 4,
      text:
        "bad_profile: 3, last 1970-01-01T00:00:00.000Z: stack_table[9]\n" +
        "too_large: 1, last 1970-01-01T00:00:01.000Z: larger than 32",
    });
    expect(refusalsOf(undefined)).toEqual({ count: 0, text: "" });
  });
});
