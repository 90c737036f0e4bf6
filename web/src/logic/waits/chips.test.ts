import { describe, expect, it } from "vitest";
import { CLASS, isKept, keptAlone, onlyOf, STATE, toggled, withoutWaits } from "./chips.ts";

const KNOWN = ["lock", "timer", "pipe"];

describe("which waits count", () => {
  it("is told by the selector, which can do without", () => {
    const query = '{service="shop",wait.class!="timer",wait.state!="idle"}';
    expect(withoutWaits(query)).toBe('{service="shop"}');
    expect(withoutWaits("{nonsense")).toBeNull();
    expect([isKept(query, CLASS, "timer"), isKept(query, CLASS, "lock")]).toEqual([false, true]);
    expect(isKept(query, STATE, "idle")).toBe(false);
  });

  it("changes by leaving one out and taking it in again", () => {
    const one = toggled('{service="shop"}', CLASS, "timer", KNOWN);
    expect(one).toBe('{service="shop",wait.class!="timer"}');
    const two = toggled(one, CLASS, "pipe", KNOWN);
    expect(two).toBe('{service="shop",wait.class!="timer",wait.class!="pipe"}');
    expect(toggled(two, CLASS, "timer", KNOWN)).toBe('{service="shop",wait.class!="pipe"}');
  });

  it("changes by keeping one alone", () => {
    const alone = onlyOf('{wait.class!="timer",node="a"}', CLASS, "lock");
    expect(alone).toBe('{node="a",wait.class="lock"}');
    expect(keptAlone(alone, CLASS)).toBe("lock");
    expect(isKept(alone, CLASS, "pipe")).toBe(false);
    expect(onlyOf(alone, CLASS, "lock")).toBe('{node="a"}');
    // Another one beside it: all but these two are left out.
    expect(toggled(alone, CLASS, "pipe", KNOWN)).toBe('{node="a",wait.class!="timer"}');
    expect(toggled(alone, CLASS, "lock", KNOWN)).toBe('{node="a"}');
  });
});
