/**
 * The frames of a tree as a file holds them. In: a tree, the zoomed frame, a colour for each frame in both themes.
 * Out: columns in pre-order, with frames that are too light for any screen left out; what is left has its own totals,
 * so that no sum changes by it.
 */
import { plainLine } from "../text/plain.ts";
import { changeOf, frameName, kindName, moduleName, type Tree } from "../tree/tree.ts";

export interface FileFrames {
  names: string[];
  modules: string[];
  kinds: string[];
  /** Fill and text of the light theme, then of the dark one. */
  paints: [string, string, string, string][];
  parent: number[];
  name: number[];
  module: number[];
  kind: number[];
  paint: number[];
  total: number[];
  self: number[];
  start: number[];
  weight: number[];
  row: number[];
  /** Of a comparison: samples of side A, and what the server said; else empty. */
  base: number[];
  change: string[];
  /** Frames of the tree. */
  all: number;
  /** What is lighter than this part of the whole is left out. */
  least: number;
}

export const MOST_FRAMES = 60_000;
const NAME_ROOM = 4_000;

/** The weight from which on there are at most so many frames. */
function leastWeight({ weight }: Tree, most: number): number {
  if (weight.length <= most) return 0;
  const sorted = Float64Array.from(weight).sort();
  return sorted[sorted.length - most] as number;
}

class Texts {
  readonly list: string[] = [];
  private readonly places = new Map<string, number>();

  of(text: string): number {
    const known = this.places.get(text);
    if (known !== undefined) return known;
    this.places.set(text, this.list.length);
    return this.list.push(text) - 1;
  }
}

export function fileFrames(
  tree: Tree,
  paintOf: (node: number) => [string, string, string, string],
  most = MOST_FRAMES,
): FileFrames {
  const least = leastWeight(tree, most);
  const [names, modules, kinds, paints] = [new Texts(), new Texts(), new Texts(), new Texts()];
  const out: FileFrames = {
    ...{ names: names.list, modules: modules.list, kinds: kinds.list, paints: [] },
    ...{ parent: [], name: [], module: [], kind: [], paint: [], total: [], self: [], start: [], weight: [], row: [] },
    ...{ base: [], change: [], all: tree.size, least: least / (tree.weight[0] || 1) },
  };
  const kept = new Int32Array(tree.size).fill(-1);
  for (let node = 0; node < tree.size; node++) {
    const weight = tree.weight[node] as number;
    const parent = tree.parent[node] as number;
    // A frame stands below its caller alone, and nothing is heavier than that.
    if (node > 0 && (weight < least || weight <= 0 || kept[parent] === -1)) continue;
    kept[node] = out.parent.length;
    out.parent.push(node === 0 ? -1 : (kept[parent] as number));
    out.name.push(names.of(plainLine(frameName(tree, node), NAME_ROOM)));
    out.module.push(modules.of(plainLine(moduleName(tree, node), NAME_ROOM)));
    out.kind.push(kinds.of(kindName(tree, node)));
    out.paint.push(paints.of(paintOf(node).join("\n")));
    out.total.push(tree.total[node] as number);
    out.self.push(tree.self[node] as number);
    out.start.push(tree.start[node] as number);
    out.weight.push(weight);
    out.row.push(tree.depth[node] as number);
    if (tree.diff === null) continue;
    out.base.push(tree.diff.baseTotal[node] as number);
    out.change.push(changeOf(tree, node));
  }
  out.paints = paints.list.map((text) => text.split("\n") as [string, string, string, string]);
  return out;
}
