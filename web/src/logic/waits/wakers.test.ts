import { describe, expect, it } from "vitest";
import { labelBehind, toWaits, toWakers, wayText } from "./wakers.ts";

describe("who ended waits", () => {
  it("is asked of those who were woken, with the operators that there were", () => {
    expect(toWakers('{service="shop",process!="sh",thread=~"wk-.*",node="a"}')).toEqual({
      query: '{woken.service="shop",woken.process!="sh",woken.thread=~"wk-.*",node="a"}',
      leftOut: [],
    });
    expect(toWakers("")).toEqual({ query: "", leftOut: [] });
    expect(toWakers("{nonsense")).toBeNull();
  });

  it("says once which labels have no such", () => {
    expect(toWakers('{pod="p",wait.class!="timer",wait.class!="pipe",service="shop",tid="7"}')).toEqual({
      query: '{woken.service="shop"}',
      leftOut: ["pod", "wait.class", "tid"],
    });
    expect(toWakers('{constructor="x"}')).toEqual({ query: "", leftOut: ["constructor"] });
  });

  it("leads back, without what is of the wakers", () => {
    expect(toWaits('{woken.thread="wk-wants",node!="b",service="shop"}')).toEqual({
      query: '{thread="wk-wants",node!="b"}',
      leftOut: ["service"],
    });
    const query = '{node="a",service="shop",process="sh\\"op",thread!~"x|y"}';
    expect(toWaits(toWakers(query)?.query ?? "")).toEqual({ query, leftOut: [] });
  });

  it("keeps the label of rows where there is such", () => {
    expect(["thread", "wait.class"].map((by) => labelBehind(by, false))).toEqual(["thread", "service"]);
    expect(["woken.thread", "process"].map((by) => labelBehind(by, true))).toEqual(["thread", "process"]);
  });

  it("tells what is left out", () => {
    expect(wayText("Who", [])).toBe("Who");
    expect(wayText("Who", ["pod", "tid"])).toBe("Who. Left out, since nothing is known of it there: pod, tid");
  });
});
