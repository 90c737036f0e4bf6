import { describe, expect, it } from "vitest";
import { UNITS, type UnitChoice } from "../text/figure.ts";
import { SAMPLES } from "../text/unit.ts";
import { sumsOfTable } from "./bothSides.ts";
import { changeText, fromTo } from "./changeText.ts";
import { normUnit, sideFigure, sumsOfSides, type Told } from "./norm.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");
/** Twenty samples a second; so many seconds of CPU time in a window of a minute, or of another length. */
const side = (seconds: number, window = 60) => ({
  samples: seconds * 20,
  cpu_seconds: seconds,
  cores: seconds / window,
});
/** S4's job runner on both sides, 45 s and 20 s, of 49 s and 48 s. */
const pair = { base: side(49), comparison: side(48) };
const toldIn = (choice: UnitChoice, normalize: "rate" | "share" | "absolute" = "rate", of = pair): Told => ({
  normalize,
  unit: SAMPLES,
  choice,
  sums: sumsOfSides({ normalize, ...of }),
});
/** What is judged of so many seconds of a side. */
const judged = (seconds: number, { normalize }: Told, of: ReturnType<typeof side>) =>
  normalize === "rate"
    ? (seconds / of.cpu_seconds) * of.cores
    : normalize === "share"
      ? seconds / of.cpu_seconds
      : seconds * 20;
const said = (told: Told, of = pair) => {
  const [a, b] = [judged(45, told, of.base), judged(20, told, of.comparison)];
  return plain(`${fromTo(a, b, told)} (${changeText(b - a, told)})`);
};

describe("both sides of a comparison", () => {
  it("are told in the unit that was chosen, and so is the change", () => {
    expect(UNITS.map((choice) => said(toldIn(choice)))).toEqual([
      "0.750 → 0.333 cores (−0.417)",
      "45.0 s → 20.0 s of CPU time (−25.0 s)",
      "900 → 400 samples (−500)",
      // Parts of different wholes: their difference is none of levels.
      "91.8 % → 41.7 % (−0.417 cores)",
    ]);
    expect(UNITS.map((choice) => normUnit(toldIn(choice)))).toEqual(["cores", "CPU time", "samples", "share"]);
  });

  it("are the same amounts by whatever they were judged", () => {
    for (const normalize of ["rate", "share", "absolute"] as const) {
      expect(said(toldIn("cores", normalize))).toMatch(/^0\.750 → 0\.333 cores/);
      expect(said(toldIn("time", normalize))).toMatch(/^45\.0 s → 20\.0 s of CPU time/);
      expect(said(toldIn("samples", normalize))).toMatch(/^900 → 400 samples/);
      expect(said(toldIn("share", normalize))).toMatch(/^91\.8 % → 41\.7 %/);
    }
  });

  it("have a change in what was judged where windows differ in length", () => {
    const uneven = { base: side(49, 600), comparison: side(48, 60) };
    expect(said(toldIn("time", "rate", uneven), uneven)).toBe("45.0 s → 20.0 s of CPU time (+0.258 cores)");
    expect(said(toldIn("time", "share"))).toBe("45.0 s → 20.0 s of CPU time (−50.2 % share)");
  });

  it("have no arrow where they are two selections", () => {
    expect(plain(fromTo(0.75, 0.333, toldIn("time"), false))).toBe("A 45.0 s, B 20.0 s of CPU time");
    expect(plain(fromTo(0.75, 0.333, toldIn("cores"), false))).toBe("A 0.750, B 0.333 cores");
  });

  it("keep their own unit where the type is no time", () => {
    const of = { samples: 4096, cpu_seconds: null, cores: null, rate: 64 };
    const sums = sumsOfSides({ normalize: "rate", base: of, comparison: of });
    const told = { normalize: "rate", unit: { name: "bytes", isTime: false }, choice: "time", sums } as const;
    expect(plain(fromTo(32, 64, told))).toBe("2.00 KiB → 4.00 KiB");
  });

  it("tell samples as they were counted, and in each unit", () => {
    const of = (choice: UnitChoice) => plain(sideFigure(900, 0, toldIn(choice)));
    expect(UNITS.map(of)).toEqual(["0.750", "45.0 s", "900", "91.8 %"]);
    expect(sideFigure(900, 0, { normalize: null })).toBe("900");
  });
});

describe("a table of both sides", () => {
  it("says by its largest row what one of its values is", () => {
    const row = (base_total: number, total: number) => ({
      ...{ base_total, total, base_self: base_total / 2, self: total / 2 },
      ...{ base_norm: base_total / 1200, norm: total / 1200 },
    });
    const answer = {
      ...{ base_samples: 980, base_cpu_seconds: 49, samples: 960, cpu_seconds: 48 },
      rows: [row(0, 240), row(900, 400)],
    };
    const told: Told = { normalize: "rate", unit: SAMPLES, choice: "time", sums: sumsOfTable(answer) };
    expect(plain(fromTo(900 / 1200, 400 / 1200, told))).toBe("45.0 s → 20.0 s of CPU time");
    expect(plain(changeText(240 / 1200, told))).toBe("+12.0 s");
    // Judged by shares it knows no levels by itself: without them it is told as it was judged.
    const shares = { ...answer, normalize: "share" as const };
    const cores = (sums: Told["sums"]) =>
      plain(fromTo(0.75, 0.4, { normalize: "share", unit: SAMPLES, choice: "cores", sums: sums ?? null }));
    expect(cores(sumsOfTable(shares))).toBe("75.0 % → 40.0 %");
    expect(cores(sumsOfTable(shares, sumsOfSides({ normalize: "share", ...pair })))).toMatch(/^0\.\d+ → 0\.\d+ cores$/);
    // By self, a value is of what a row took itself.
    const own = { ...told, sums: sumsOfTable({ ...answer, measure: "self" }) };
    expect(plain(fromTo(900 / 1200, 400 / 1200, own))).toBe("22.5 s → 10.0 s of CPU time");
  });
});
