import { describe, expect, it } from "vitest";
import { besideOf, figureHead, figureText, figureWords, scaled, scaleOf, UNITS, type Worth } from "./figure.ts";
import { SAMPLES } from "./unit.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");
/** 1200 samples at 20 Hz over 120 s: a minute of CPU time, half a core. */
const worth: Worth = { secondsPerSample: 0.05, coresPerSample: 0.5 / 1200, samples: 1200, unit: SAMPLES };

describe("the unit of numbers", () => {
  it("tells the same samples in each of them", () => {
    const told = UNITS.map((choice) => [figureHead(choice, SAMPLES), plain(figureText(300, choice, worth))]);
    expect(told).toEqual([
      ["cores", "0.125"],
      ["CPU time", "15.0 s"],
      ["samples", "300"],
      ["share", "25.0 %"],
    ]);
  });

  it("says what a number is of, where it stands alone", () => {
    expect(UNITS.map((choice) => plain(figureWords(300, choice, worth)))).toEqual([
      "0.125 cores",
      "15.0 s of CPU time",
      "300 samples",
      "25.0 %",
    ]);
    const waits: Worth = { ...worth, unit: { name: "nanoseconds", isTime: true, isWait: true } };
    expect(plain(figureWords(300, "time", waits))).toBe("15.0 s waited");
  });

  it("never leaves a share alone", () => {
    expect(besideOf("share")).toBe("cores");
    for (const choice of UNITS) expect([choice, besideOf(choice)]).toContain("share");
    for (const choice of UNITS) expect(besideOf(choice)).not.toBe(choice);
  });

  it("keeps the unit of what is no time", () => {
    const bytes: Worth = {
      secondsPerSample: 0,
      coresPerSample: 1 / 120,
      samples: 4096,
      unit: { name: "bytes", isTime: false },
    };
    expect(UNITS.map((choice) => plain(figureText(2048, choice, bytes)))).toEqual([
      plain(figureText(2048, "cores", bytes)),
      "2.00 KiB",
      "2.00 KiB",
      "50.0 %",
    ]);
    expect(figureHead("time", bytes.unit)).toBe("bytes");
  });

  it("scales a chart by one number, so that its picture stays the same", () => {
    expect(scaleOf("cores", true, 20, 2)).toBeNull();
    expect(scaled(0.5, null)).toBe("0.500");
    expect(scaled(0.5, scaleOf("time", true, 20, 2))).toBe("500");
    expect(scaled(0.5, scaleOf("samples", true, 20, 2))).toBe("10.0");
    expect(scaled(0.5, scaleOf("share", true, 20, 2))).toBe("25.0");
    expect(scaleOf("share", true, 20, 0)).toBeNull();
    expect(scaleOf("samples", false, 20, 2)).toBeNull();
  });
});
