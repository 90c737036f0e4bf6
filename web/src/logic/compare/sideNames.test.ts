import { describe, expect, it } from "vitest";
import { bothText, changeWords, sideNamesOf, sideText } from "./sideNames.ts";

const names = (a: string, b: string) => sideNamesOf(a, b, true).names;

describe("what the sides of a comparison are called", () => {
  it("is before and after for one selection whose first window comes first", () => {
    const sides = sideNamesOf('{service="x"}', '{service="x"}', true);
    expect([sideText(sides, 0), sideText(sides, 1)]).toEqual(["A, before", "B, after"]);
    expect(changeWords(sides, "new")).toBe("new: only after");
  });

  it("is their letters where A is not before B", () => {
    const sides = sideNamesOf("", "", false);
    expect([sideText(sides, 0), sideText(sides, 1)]).toEqual(["A", "B"]);
    expect(changeWords(sides, "grew")).toBe("more in B");
    expect(changeWords(sides, "gone")).toBe("only in A");
  });

  it("is what tells two selections apart", () => {
    const id = (digit: string) => digit.repeat(64);
    expect(names(`{node="n",container="${id("a")}"}`, `{node="n",container="${id("b")}"}`)).toEqual([
      "aaaaaaaaaaaa",
      "bbbbbbbbbbbb",
    ]);
    expect(names('{service!="kubelet"}', '{service="kubelet"}')).toEqual(["not kubelet", "kubelet"]);
    expect(names('{service="a"}', '{service="a",mode="kernel"}')).toEqual(["all", "kernel"]);
    expect(names('{service="a",node=""}', '{service="b"}')).toEqual(["a, (none)", "b"]);
    const sides = sideNamesOf('{service="a"}', '{service="b"}', true);
    expect([sideText(sides, 0), changeWords(sides, "shrank"), changeWords(sides, "new")]).toEqual([
      "A, a",
      "more in a",
      "only in b",
    ]);
  });

  it("is their letters where that tells nothing: unreadable, or the same in another order", () => {
    expect(names("{service=", '{service="b"}')).toEqual(["A", "B"]);
    expect(names('{a="1",b="2"}', '{b="2",a="1"}')).toEqual(["A", "B"]);
    expect(names('{service="x"}', '{node="x"}')).toEqual(["A", "B"]);
  });

  it("has an arrow between figures where A was before B, and nowhere else", () => {
    const [turn, apart] = [sideNamesOf("", "", true), sideNamesOf('{service="a"}', '{service="b"}', true)];
    expect(bothText("12", "40", turn)).toBe("12 → 40");
    expect(bothText("12", "40", apart)).toBe("A 12, B 40");
    expect(bothText("12", "40", sideNamesOf("", "", false))).toBe("A 12, B 40");
  });

  it("is no longer than there is room", () => {
    const [a, b] = names(`{service="${"x".repeat(300)}"}`, '{service="b"}');
    expect(a.length).toBeLessThanOrEqual(28);
    expect(b).toBe("b");
  });
});
