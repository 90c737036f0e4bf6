import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { unevenTree } from "../../logic/fixtures.ts";
import { Runs } from "../../logic/flame/cells.ts";
import { viewOf } from "../../logic/flame/layout.ts";
import { ROOT } from "../../logic/tree/tree.ts";
import { Minimap } from "./minimap.ts";
import { Colours, type Scene } from "./paint.ts";

/** A canvas that draws nothing, and tells how it was asked to. */
function canvasThat(tells: (what: string, ...of: unknown[]) => void) {
  const context = new Proxy({} as Record<string, unknown>, {
    get: (own, name) => own[String(name)] ?? ((...of: unknown[]) => tells(String(name), ...of)),
  });
  return { width: 0, height: 0, getContext: () => context } as unknown as HTMLCanvasElement;
}

describe("the map of a graph", () => {
  beforeEach(() => {
    vi.stubGlobal("document", { createElement: () => canvasThat(() => {}) });
    vi.stubGlobal("ImageData", class {});
  });
  afterEach(() => void vi.unstubAllGlobals());

  it("is the same picture with the root at the bottom: turned over, without a pass over the tree", () => {
    const whole = unevenTree().tree;
    let passes = 0;
    const tree = {
      ...whole,
      get levels() {
        passes++;
        return whole.levels;
      },
    };
    const asked: unknown[][] = [];
    const target = canvasThat((what, ...of) => asked.push([what, ...of]));
    const colours = new Colours(tree, "light", "module");
    const scene = (flame: boolean): Scene => ({
      ...{ tree, view: viewOf(whole, ROOT), focus: ROOT, search: null, hovered: null, selected: null, pointed: -1 },
      ...{ flame, width: 1000, height: 400, scrollTop: 0, firstRow: 0, rows: 2, ratio: 1, runs: new Runs() },
      theme: "light",
    });
    const map = new Minimap();
    const turned = () => asked.some(([what, , , , down]) => what === "setTransform" && down === -1);
    map.paint(target, scene(false), colours, { first: 0, rows: 2 });
    expect(passes).toBeGreaterThan(0);
    expect(turned()).toBe(false);
    passes = 0;
    map.paint(target, scene(true), colours, { first: 0, rows: 2 });
    expect(turned()).toBe(true);
    expect(passes).toBe(0);
    // Another tree is another picture.
    map.paint(target, { ...scene(true), tree: Object.create(tree) as typeof tree }, colours, { first: 0, rows: 2 });
    expect(passes).toBeGreaterThan(0);
  });
});
