import { describe, expect, it } from "vitest";
import { diffPaint, framePaint, kernelShade, kindOf, layerColours } from "./colour.ts";
import { ago, axisNumber, brief, bytes, count, digits, duration, factor, percent, plural } from "./format.ts";
import { idleText, lossOf } from "./loss.ts";
import { fitName } from "./names.ts";
import { scrollToRow, visibleRows } from "./rows.ts";
import { fromLocalInput, parseTime, rangeText, tickLabels, toLocalInput } from "./time.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");

describe("numbers", () => {
  it.each([
    [count(1234567), "1 234 567"],
    [count(-12), "−12"],
    [brief(999), "999"],
    [brief(12_345), "12.3 k"],
    [brief(4_560_000), "4.56 M"],
    [digits(0), "0"],
    [digits(0.0001), "<0.001"],
    [digits(0.0553), "0.055"],
    [digits(12.34), "12.3"],
    [digits(-3.456), "−3.46"],
    [axisNumber(0.30000000000000004), "0.3"],
    [axisNumber(1500), "1500"],
    [percent(0), "0 %"],
    [percent(0.00001), "<0.01 %"],
    [percent(0.3), "30.0 %"],
    [percent(1), "100 %"],
    [percent(0.0721), "7.21 %"],
    [duration(0.05), "50.0 ms"],
    [duration(61), "1 min 1 s"],
    [duration(3600), "1 h"],
    [duration(93_600), "1 d 2 h"],
    [bytes(512), "512 B"],
    [bytes(48 * 2 ** 20), "48.0 MiB"],
    [factor(2, 7), "3.50×"],
    [factor(0, 7), ""],
    [factor(1000, 5), "0.01×"],
    [factor(1000, 4), "<0.01×"],
    [factor(2, 1998), "999×"],
    [factor(2, 1999.5), ">999×"],
    [ago(0, 500), "just now"],
    [ago(0, 75_000), "1 min 15 s ago"],
    [plural(1, "gap"), "1 gap"],
    [plural(2000, "gap"), "2 000 gaps"],
  ])("%s", (text, wanted) => expect(plain(text)).toBe(wanted));
});

describe("times", () => {
  it("reads every form that the API takes", () => {
    expect(parseTime("now", 5)).toBe(5);
    expect(parseTime("now-90s", 100_000)).toBe(10_000);
    expect(parseTime("1700000000000", 0)).toBe(1_700_000_000_000);
    expect(parseTime("2026-11-21T08:00:00Z", 0)).toBe(Date.UTC(2026, 10, 21, 8));
    expect(parseTime("yesterday", 0)).toBeNull();
    expect(parseTime("now-1y", 0)).toBeNull();
  });

  it("goes through the input fields unchanged, to the second", () => {
    const moment = new Date(2026, 2, 4, 5, 6, 7).getTime();
    expect(fromLocalInput(toLocalInput(moment))).toBe(moment);
    expect(fromLocalInput("")).toBeNull();
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

describe("names in little room", () => {
  it("drops arguments, then parameters, then scopes, then its beginning", () => {
    const name = "void ns::Map<int, std::pair<a, b>>::insert(int, char const*)";
    expect(fitName(name, 100)).toBe(name);
    expect(fitName(name, 50)).toBe("void ns::Map<int, std::pair<a, b>>::insert");
    expect(fitName(name, 24)).toBe("void ns::Map::insert");
    expect(fitName(name, 14)).toBe("Map::insert");
    expect(fitName(name, 6)).toBe("insert");
    expect(fitName(name, 4)).toBe("…ert");
    expect(fitName(name, 2)).toBe("");
  });

  it("keeps closures with their function, and no stray colons", () => {
    expect(fitName("rustc::mir::codegen_mir::<Builder<X>>", 22)).toBe("mir::codegen_mir");
    expect(fitName("alloc::Vec::<T>::new", 10)).toBe("Vec::new");
    expect(fitName("a::module::function::{closure#0}", 24)).toBe("function::{closure#0}");
    expect(fitName("a::module::function::{closure#0}", 14)).toBe("function");
    expect(fitName("a::module::function::{closure#0}", 5)).toBe("…tion");
    expect(fitName("core::ops::FnOnce::call_once{{vtable.shim}}", 18)).toBe("FnOnce::call_once");
  });

  it("leaves what only looks like brackets", () => {
    expect(fitName("<T as core::fmt::Display>::fmt", 26)).toBe("Display::fmt");
    expect(fitName("<alloc::vec::Vec<T> as Extend<T>>::extend", 20)).toBe("Extend::extend");
    expect(fitName("operator()", 8)).toBe("…rator()");
    expect(fitName("path/filepath.Walk", 14)).toBe("filepath.Walk");
    expect(fitName("a->b(c)", 5)).toBe("a->b");
  });

  it("keeps the end of names with dots: receivers, methods, no file's ending, no copy's number", () => {
    const go = "k8s.io/kubernetes/pkg/kubelet.(*Kubelet).syncPod";
    expect(fitName(go, 40)).toBe("pkg/kubelet.(*Kubelet).syncPod");
    expect(fitName(go, 28)).toBe("kubelet.(*Kubelet).syncPod");
    expect(fitName(go, 20)).toBe("(*Kubelet).syncPod");
    expect(fitName(go, 8)).toBe("syncPod");
    expect(fitName("java.util.concurrent.ThreadPoolExecutor.runWorker(Worker)", 30)).toBe(
      "ThreadPoolExecutor.runWorker",
    );
    expect(fitName("main.main.func1", 12)).toBe("main.func1");
    expect(fitName("main.func1", 7)).toBe("….func1");
    expect(fitName("__alloc_pages_slowpath.constprop.0", 24)).toBe("__alloc_pages_slowpath");
    expect(fitName("__alloc_pages_slowpath.constprop.0", 10)).toBe("…_slowpath");
    expect(fitName("libc.so.6", 8)).toBe("…bc.so.6");
    expect(fitName("perf-1234.map", 9)).toBe("…1234.map");
  });
});

describe("loss", () => {
  it("says how much CPU time no tick told of, beside what was idle", () => {
    expect(idleText({ idle_share: 0.25 })).toBe("25.0\u202f%");
    expect(idleText({ idle_share: 0, missed_share: 0.5 })).toBe("0\u202f%, 50.0\u202f% unseen");
    expect(idleText({ idle_share: 0.98, missed_share: 0.02 }), "phase, or little stolen").toBe("98.0\u202f%");
    expect(idleText({ idle_share: null, missed_share: null })).toBe("");
  });

  it("sums what was lost and names each cause that lost anything", () => {
    const loss = lossOf({ ring_full: 12_345, disk_full: 0, unsent: 2 });
    expect(loss.samples).toBe(12_347);
    expect(loss.brief).toBe("ring_full 12.3\u202fk, unsent 2");
    expect(loss.text).toBe("ring_full: 12\u202f345, unsent: 2");
    expect(lossOf({ ring_full: 0 })).toEqual(lossOf(undefined));
  });
});

describe("colours", () => {
  it("tells inlined frames from their kind, and unknown kinds from none", () => {
    expect(kindOf("native", true)).toBe("inlined");
    expect(kindOf("kernel", false)).toBe("kernel");
    expect(kindOf("something", false)).toBe("unknown");
    expect(framePaint("native", "a", "light")).toEqual(framePaint("native", "a", "light"));
  });

  it("goes from grey to full colour, red for more and blue for less", () => {
    const hue = (fill: string) => Number(/hsl\((\d+)/.exec(fill)?.[1]);
    expect(hue(diffPaint("grew", 1, "light").fill)).toBe(4);
    expect(hue(diffPaint("gone", 0.1, "dark").fill)).toBe(217);
    expect(diffPaint("same", 1, "light")).toEqual(diffPaint("same", 0, "light"));
    expect(diffPaint("grew", 0.01, "light").fill).not.toBe(diffPaint("same", 0, "light").fill);
  });

  it("gives the layers of a chart different colours, the same one to the same name", () => {
    const names = Array.from({ length: 20 }, (_, i) => `service-${i}`);
    expect(new Set(layerColours(names)).size).toBe(20);
    expect([kernelShade("#4c8dff", "light"), kernelShade("#000000", "dark")]).toEqual(["#2c5294", "#6b6b6b"]);
    expect(layerColours(["a"])[0]).toBe(layerColours(["a", "b"])[0]);
    expect(layerColours(["a", null])[1]).not.toBe(layerColours(["a", null])[0]);
  });
});

describe("long tables", () => {
  it("draws the rows in sight and some around", () => {
    expect(visibleRows(10_000, 24, 2400, 240, 2)).toEqual({ first: 98, behind: 112 });
    expect(visibleRows(3, 24, 0, 240)).toEqual({ first: 0, behind: 3 });
    expect(visibleRows(3, 24, 9999, 240)).toEqual({ first: 3, behind: 3 });
  });

  it("scrolls no further than needed", () => {
    expect(scrollToRow(0, 24, 100, 240)).toBe(0);
    expect(scrollToRow(20, 24, 0, 240)).toBe(264);
    expect(scrollToRow(5, 24, 0, 240)).toBe(0);
  });
});
