import { describe, expect, it } from "vitest";
import { ratesOf } from "./rates.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");

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
