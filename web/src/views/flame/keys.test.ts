import { describe, expect, it } from "vitest";
import { answerOf } from "../../logic/fixtures.ts";
import { viewOf } from "../../logic/flame/layout.ts";
import { matcherOf, matchesOf, namesOf, search } from "../../logic/flame/search.ts";
import { ROOT, treeOf } from "../../logic/tree/tree.ts";
import { commandOf, type KeyScene } from "./keys.ts";

const tree = treeOf(
  answerOf([
    {
      name: "main",
      self: 2,
      calls: [
        { name: "walk", self: 5 },
        { name: "read", self: 3 },
      ],
    },
    { name: "idle", self: 4 },
  ]),
);
const named = (name: string) => Array.from(tree.name).findIndex((id) => tree.strings[id] === name);
const [main, walk, read, idle] = ["main", "walk", "read", "idle"].map(named) as [number, number, number, number];

const none = { shiftKey: false, ctrlKey: false, metaKey: false, altKey: false };
const scene = (change: Partial<KeyScene> = {}): KeyScene => {
  const limits = viewOf(tree, change.focus ?? ROOT);
  return { tree, focus: ROOT, selected: null, search: null, flame: false, view: limits, limits, ...change };
};
const pressed = (key: string, given: Partial<KeyScene> = {}, held: Partial<typeof none> = {}) =>
  commandOf({ ...none, ...held, key }, scene(given));

describe("keys of a flamegraph", () => {
  it("walk from frame to frame, up or down by where the root is", () => {
    expect(pressed("ArrowDown")).toEqual({ does: "select", node: ROOT });
    expect(pressed("ArrowDown", { selected: main })).toEqual({ does: "select", node: walk });
    expect(pressed("ArrowUp", { selected: walk })).toEqual({ does: "select", node: main });
    expect(pressed("ArrowUp", { selected: main, flame: true })).toEqual({ does: "select", node: walk });
    expect(pressed("ArrowRight", { selected: walk })).toEqual({ does: "select", node: read });
    expect(pressed("End", { selected: main })).toEqual({ does: "select", node: idle });
  });

  it("zoom into the selected frame, out of the zoomed one, and open the menu beside either", () => {
    expect(pressed("Enter", { selected: walk })).toEqual({ does: "zoom", node: walk });
    expect(pressed(" ", { focus: main })).toEqual({ does: "zoom", node: main });
    expect(pressed("Enter", { focus: main, selected: idle }), "what is out of sight").toEqual({
      does: "zoom",
      node: main,
    });
    expect(pressed("Backspace", { focus: walk })).toEqual({ does: "zoom", node: main });
    expect(pressed("Backspace")).toEqual({ does: "zoom", node: ROOT });
    expect(pressed("Escape")).toEqual({ does: "reset" });
    expect(pressed("F10", { selected: walk }, { shiftKey: true })).toEqual({ does: "menu", node: walk });
    expect(pressed("ContextMenu")).toEqual({ does: "menu", node: ROOT });
  });

  it("move what is in sight, and never beyond the zoomed frame", () => {
    const limits = viewOf(tree, ROOT);
    const narrow = { from: 2, until: 6 };
    expect(pressed("ArrowRight", { view: narrow }, { shiftKey: true })).toEqual({
      does: "show",
      view: { from: 3, until: 7 },
    });
    expect(pressed("ArrowLeft", {}, { shiftKey: true })).toEqual({ does: "show", view: limits });
    expect(pressed("-")).toEqual({ does: "show", view: limits });
    const closer = pressed("+", { selected: idle });
    expect(closer?.does === "show" && closer.view.until - closer.view.from).toBeCloseTo(
      (limits.until - limits.from) * 0.8,
    );
  });

  it("go through matches, also hidden ones", () => {
    const wanted = matcherOf("idle");
    if (wanted === null || "error" in wanted) throw new Error("no matcher");
    const found = search(tree, matchesOf(tree, namesOf(tree), wanted), ROOT);
    expect(pressed("n", { search: found })).toEqual({ does: "find", node: idle, isHidden: false });
    expect(pressed("N", { search: found, focus: main })).toEqual({ does: "find", node: idle, isHidden: true });
    expect(pressed("n"), "where nothing is searched for").toEqual({ does: "act", node: null, key: "n" });
  });

  it("leave to actions what they do not know, and to the browser what it knows", () => {
    expect(pressed("s", { selected: walk })).toEqual({ does: "act", node: walk, key: "s" });
    expect(pressed("i")).toEqual({ does: "act", node: null, key: "i" });
    expect(pressed("ArrowDown", {}, { altKey: true })).toBeNull();
    expect(pressed("+", {}, { ctrlKey: true })).toBeNull();
  });
});
