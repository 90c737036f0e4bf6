import { describe, expect, it } from "vitest";
import { DEFAULTS, writeState } from "../address/url.ts";
import { strangersIn, strangersText } from "./strangers.ts";

describe("an address of another version of the page", () => {
  it("tells what is not known here: names, and values of a choice", () => {
    expect(strangersIn("?view=explore&theme=pink&live=1&shape=round&query=%7B%7D")).toEqual([
      "theme=pink",
      "shape=round",
    ]);
    expect(strangersIn("?live=yes")).toEqual(["live=yes"]);
    expect(strangersIn(writeState({ ...DEFAULTS, view: "compare", live: true, find: "x" }))).toEqual([]);
    expect(strangersIn("?toString=1")).toEqual(["toString=1"]);
  });

  it("tells free values that say nothing", () => {
    const wrong =
      "from=yesterday&until=12:00&baseFrom=x&chartUntil=-1&zoom=9-3&markA=half&part=0-9999999&box=here&column=7" +
      "&before=soon&limit=0&tab=party&sort=-colour&group=a,,b&more=chart,moon&transform=hide:x;explode";
    expect(strangersIn(`?${wrong}`).map((one) => one.split("=")[0])).toEqual(
      wrong.split("&").map((one) => one.split("=")[0]),
    );
  });

  it("is silent about all that the page writes itself", () => {
    const written = writeState({
      ...DEFAULTS,
      from: "now-2h",
      until: "2026-11-21T10:00:00Z",
      baseFrom: "1763713000000",
      zoom: "1763713380000.125-1763713380001.5",
      box: "1763713380000.5-7",
      markA: "1763713380000-1763713380020",
      markB: "rest",
      part: "250000-500000.5",
      open: "1x.2y",
      column: "5",
      before: "100",
      limit: "100000",
      tab: "thread",
      sort: "-total",
      group: "service,process",
      more: "data,sides",
      transform: "hide:a\\;b:c;merge",
      by: "any.label/of-mine",
      focus: "main;f<a,b>(int);100 %",
    });
    expect(strangersIn(written)).toEqual([]);
    expect(strangersText(written, { view: "explore", group: "service,process" })).toBe("");
  });

  it("is told in a sentence, cut where it is long, and with what holds elsewhere alone", () => {
    const told = strangersText(`?shape=${"x".repeat(1_000)}`, DEFAULTS);
    expect(told.startsWith("Not understood in the address: shape=xxx")).toBe(true);
    expect(told.length).toBeLessThan(400);
    expect(strangersText("?view=timeline&group=service", { view: "timeline", group: "service" })).toBe(
      "Preceding samples have no rows (group=service).",
    );
    for (const group of ["", "none", "auto"]) expect(strangersText("", { view: "timeline", group })).toBe("");
  });
});
