import { describe, expect, it } from "vitest";
import {
  amountHead,
  amountShort,
  amountText,
  isWait,
  rateHead,
  rateShort,
  rateText,
  SAMPLES,
  timeHead,
  unitOf,
} from "./unit.ts";

describe("what is counted", () => {
  const plain = (text: string) => text.replace(/\u202f/g, " ");
  const of = (unit: string, isTime: boolean) => unitOf({ unit, is_time: isTime });

  it("are samples, and time where values have no period in common", () => {
    expect(unitOf(null)).toEqual(SAMPLES);
    expect(unitOf({ unit: "samples" })).toEqual(SAMPLES);
    expect(amountText(1, SAMPLES)).toBe("1 sample");
    expect(rateText(0.42, SAMPLES)).toBe("0.420 cores");
    const time = of("nanoseconds", true);
    expect(plain(amountText(3.5e9, time))).toBe("3.50 s of CPU time");
    expect(plain(amountShort(3.5e9, time))).toBe("3.50 s");
    expect([amountHead(time), rateHead(time)]).toEqual(["CPU time", "cores"]);
  });

  it("keeps its own unit where it is no time: no cores are made of bytes", () => {
    const space = of("bytes", false);
    expect(plain(amountText(524_288, space))).toBe("512 KiB");
    expect(plain(rateText(2_097_152, space))).toBe("2.00 MiB/s");
    expect([amountHead(space), rateHead(space), rateHead(of("bytes per second", false))]).toEqual([
      "bytes",
      "bytes per second",
      "bytes per second",
    ]);
    expect(plain(rateShort(2048, of("bytes per second", false)))).toBe("2.00 KiB");
    expect(plain(amountText(1234, of("count", false)))).toBe("1 234");
    expect(plain(amountText(12, of("objects", false)))).toBe("12 objects");
    expect(rateText(30, of("count", false))).toBe("30/s");
  });

  it("are threads that wait, where the type is of waits", () => {
    const unit = unitOf({ unit: "nanoseconds", is_time: true, type: "run_queue" });
    expect(amountText(3.4e9, unit)).toBe("3.40\u202fs waited");
    expect(rateText(12.3, unit)).toBe("12.3 threads waiting");
    expect([amountHead(unit), timeHead(unit), rateHead(unit)]).toEqual([
      "time waited",
      "time waited",
      "threads waiting",
    ]);
    expect(["cpu", "off_cpu", "run_queue", "wake_up", "wall"].map(isWait)).toEqual([false, true, true, true, false]);
    // Bytes are no time, whatever their type is called.
    expect(unitOf({ unit: "bytes", is_time: false, type: "off_cpu" })).toEqual({ name: "bytes", isTime: false });
  });
});
