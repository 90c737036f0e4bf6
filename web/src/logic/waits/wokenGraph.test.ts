import { describe, expect, it } from "vitest";
import { answerOf } from "../fixtures.ts";
import { transformed } from "../transform/transform.ts";
import { isRow, titleOf } from "../tree/rows.ts";
import { ROOT, treeOf } from "../tree/tree.ts";
import { knownText, wakerWords, wokenOf } from "./wokenGraph.ts";

const row = (label: string, value: string, calls: Parameters<typeof answerOf>[0]) => ({
  name: value,
  module: label,
  kind: "label",
  calls,
});

describe("the graph of wakers", () => {
  const waits = treeOf(
    answerOf([
      row("service", "shop", [
        {
          name: "main",
          module: "shop",
          calls: [
            { name: "take", module: "shop", self: 3 },
            { name: "2 frames below the threshold", kind: "trimmed", self: 1 },
          ],
        },
      ]),
    ]),
  );
  const rows = [{ label: "service", operator: "=", value: "shop" }];
  const main = "native,shop,main";

  it("is of all waits, of those of a row, or of those with the zoomed frame at its place", () => {
    expect(wokenOf(waits, ROOT, [])).toEqual({ rows: [], match: null, name: "", isWider: false });
    expect(wokenOf(waits, 1, [])).toEqual({ rows, match: null, name: "service shop", isWider: false });
    expect(wokenOf(waits, 3, [])).toEqual({
      rows,
      match: { match_path: `${main};native,shop,take` },
      name: "take",
      isWider: false,
    });
  });

  it("is of more where the server does not know the place, which is said", () => {
    expect(wokenOf(waits, 3, [{ op: "invert", name: "" }])).toEqual({
      rows,
      match: { match_frame: "native,shop,take" },
      name: "take",
      isWider: true,
    });
    expect(wokenOf(waits, 4, [])).toEqual({
      rows,
      match: { match_path: main },
      name: "2 frames below the threshold",
      isWider: true,
    });
  });

  it("is of the stacks that are left, where only those of a function are", () => {
    const focus = { op: "focus", name: "take(int)" } as const;
    const match = { match: "^take\\(int\\)$" };
    expect(wokenOf(waits, ROOT, [focus])).toEqual({ rows: [], match, name: "take(int)", isWider: false });
    expect(wokenOf(waits, ROOT, [{ op: "focus", name: "main" }, focus]).isWider).toBe(true);
    expect(wokenOf(waits, ROOT, [{ op: "hide", name: "main" }])).toEqual(wokenOf(waits, ROOT, []));
  });

  it("is of the stacks that are left in a row, where one is zoomed", () => {
    const focus = { op: "focus", name: "take" } as const;
    const match = { match: "^take$" };
    const { tree: focused } = transformed(waits, [focus]);
    expect(titleOf(focused, 1)).toBe("service shop");
    expect(wokenOf(focused, 1, [focus])).toEqual({ rows, match, name: "service shop", isWider: false });
    expect(wokenOf(focused, 1, [{ op: "focus", name: "main" }, focus])).toMatchObject({ match, isWider: true });
    const hide = { op: "hide", name: "main" } as const;
    const { tree: hidden } = transformed(waits, [hide]);
    expect(wokenOf(hidden, 1, [hide])).toEqual({ rows, match: null, name: "service shop", isWider: false });
    // The row's stacks through `main` alone are in sight.
    const sandwich = { op: "sandwich", name: "take" } as const;
    const { tree: around } = transformed(waits, [sandwich]);
    const row = Array.from({ length: around.size }, (_, i) => i).find((i) => isRow(around, i)) ?? ROOT;
    expect(wokenOf(around, row, [sandwich])).toEqual({ rows, match, name: "service shop", isWider: true });
  });

  it("says of how much it is known", () => {
    const said = (known: number, unknown: number) => knownText({ known, unknown }, 0.5).replaceAll("\u202f", " ");
    expect(said(9, 1)).toBe("known of 4.50 s of 5.00 s (90.0 %); of 500 ms nobody is known");
    expect(said(4, 0)).toBe("known of all 2.00 s");
    expect(said(0, 4)).toBe("nobody is known of all 2.00 s");
  });

  it("says what its frames stand for", () => {
    const nobody = { name: "[no waker known]", kind: "unknown", self: 1 };
    const wakers = treeOf(
      answerOf([
        row("process", "", [row("thread", "", [nobody])]),
        row("process", "db", [row("thread", "writer", [{ name: "unlock", module: "db", self: 2 }])]),
      ]),
    );
    expect([ROOT, 1, 2, 3, 4, 5, 6].map((node) => wakerWords(wakers, node))).toEqual([
      "all of these waits, by who ended them",
      "waits that nobody is known to have ended",
      "waits that nobody is known to have ended",
      "waits that go on, and those whose end was not sampled or not observed",
      "waits that it ended",
      "waits that it ended",
      "waits that were ended in it, or in what it calls",
    ]);
    // Somebody without a name is somebody, with a stack or without one.
    const some = treeOf(
      answerOf([
        row("process", "", [row("thread", "", [nobody]), row("thread", "7", [{ name: "post", self: 2 }])]),
        { ...row("process", "sh", []), self: 1 },
      ]),
    );
    expect([1, 2, 4, 6].map((node) => wakerWords(some, node))).toEqual([
      "waits that it ended",
      "waits that nobody is known to have ended",
      "waits that it ended",
      "waits that it ended",
    ]);
  });
});
