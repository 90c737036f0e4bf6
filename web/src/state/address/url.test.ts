import { describe, expect, it } from "vitest";
import { DEFAULTS, missingIn, readState, unknownIn, writeState } from "./url.ts";

describe("the address", () => {
  it("is empty where everything has its default", () => {
    expect(writeState(DEFAULTS)).toBe("");
    expect(readState("")).toEqual(DEFAULTS);
  });

  it("holds the whole state", () => {
    const state = {
      view: "compare",
      type: "off_cpu",
      query: '{service="a b",node=~"x|y"}',
      from: "1763713380000",
      until: "1763713440000",
      by: "pod",
      baseQuery: '{service="c"}',
      baseFrom: "1763713000000",
      baseUntil: "1763713060000",
      normalize: "share",
      match: "/a&b=c+d/i",
      focus: "main;f<a,b>(int);100 %",
      frame: "main;g",
      history: "place",
      part: "250000-500000",
      open: "1x.2y",
      sort: "-total",
      all: true,
      group: "service,process",
      runtime_frames: "show",
      transform: "hide:a\\;b:c;merge",
      colour: "module",
      theme: "dark",
      tz: "utc",
      unit: "share",
      chartFrom: "1",
      chartUntil: "2",
      layout: "flame",
      pane: "table",
      rank: "process",
      graphs: "beside",
      width: "after",
      only: "significant",
      measure: "self",
      confidence: "0.99",
      lock: true,
      live: true,
      capacity: true,
      markA: "1763713380000-1763713380020",
      markB: "rest",
      letter: "B",
      column: "5",
      zoom: "1763713380000.125-1763713380001.5",
      box: "1763713380000.5-7",
      hit: "/softirq/i",
      before: "100",
      limit: "100000",
      waits: false,
      wait: "1763713380123.5-77",
      woken: true,
      waker: "process=db;thread=writer;main",
      least: "50",
      most: "60000",
      row: "=shop",
      ended: true,
      find: "web 6.8",
      state: "silent",
      agentVersion: "0.1.0",
      kernel: "6.8.0",
      trouble: "any",
      agent: "0123-ab",
      markers: false,
      split: "version",
      draw: "lines",
      apart: true,
      lists: false,
      tab: "spent",
      more: "data,sides",
      against: "week",
    } as const;
    expect(new Set(Object.keys(state))).toEqual(new Set(Object.keys(DEFAULTS)));
    expect(readState(writeState(state))).toEqual(state);
  });

  it("keeps a measure and a unit that are said, also those that are usual", () => {
    expect(writeState(readState("?unit=cores"))).toBe("?unit=cores");
    expect([readState("").measure, readState("").unit]).toEqual(["", ""]);
    for (const measure of ["total", "self"] as const) {
      expect(readState(`?measure=${measure}`).measure).toBe(measure);
      expect(writeState({ ...DEFAULTS, measure })).toBe(`?measure=${measure}`);
    }
  });

  it("falls back to the default for what it does not know", () => {
    expect(readState("?view=party&normalize=odd&unknown=1&theme=pink&live=yes")).toEqual(DEFAULTS);
  });
});

describe("what an address holds that means nothing here", () => {
  it("stays in it, as far as it is short", () => {
    expect(unknownIn("?view=compare&shape=round&query=%7B%7D&tone=a%20b")).toBe("shape=round&tone=a+b");
    expect(unknownIn(writeState({ ...DEFAULTS, view: "compare", live: true, find: "x" }))).toBe("");
    expect(unknownIn(`?long=${"x".repeat(5_000)}&shape=round`)).toBe("shape=round");
  });
});

describe("an address that the page does not have", () => {
  const missing = (address: string) => missingIn(new URL(address, "http://stakeout"));

  it("is another path, or a view that there is not", () => {
    expect(missing("/wp-admin")).toContain("/wp-admin");
    expect(missing("/assets/?view=explore")).toContain("/assets/");
    expect(missing("/?view=nothing")).toContain("nothing");
    for (const known of ["/", "/index.html", "/?view=explore", "/?view=nodes&by=node", "/?by=x"])
      expect(missing(known)).toBeNull();
  });
});
