/**
 * Which pixels of a row its frames lie on, for all letters of a search. In: a tree, a depth, the visible range and the
 * width in device pixels. Out: cells from left to right, each a frame or all slivers of a pixel. Made once for what is
 * in sight; another letter then only asks which of a cell's frames match, or where the few frames that match lie.
 */
import type { Tree } from "../tree/tree.ts";
import { firstBeginningAt, firstEndingBehind, nextEndingBehind, type Run, rowRuns, type View } from "./layout.ts";
import type { HitRows, Matching, Search } from "./search.ts";

/**
 * Four numbers a cell: its pixels (`left` included, `right` excluded), and the entries of the level that lie on them,
 * likewise.
 */
export type Cells = Int32Array;

const NUMBERS = 4;
/** Of a pixel. As for runs: edges of neighbours are sums in another order. */
const SLACK = 1e-6;

/** The pixel that a place of the range (in weight) begins in. */
function leftOf(place: number, scale: number, width: number): number {
  return Math.min(width - 1, Math.max(0, Math.round(place * scale)));
}

function rightOf(place: number, scale: number, width: number): number {
  return Math.min(width, Math.round(place * scale));
}

export function cellsOf(tree: Tree, depth: number, view: View, width: number): Cells {
  const level = tree.levels[depth];
  const span = view.until - view.from;
  if (level === undefined || !(span > 0) || width < 1) return new Int32Array(0);
  const scale = width / span;
  const slack = SLACK / scale;
  const cells: number[] = [];
  let i = firstEndingBehind(tree, level, view.from + slack);
  const behind = firstBeginningAt(tree, level, view.until - slack);
  while (i < behind) {
    const node = level[i] as number;
    const weight = tree.weight[node] as number;
    if (weight <= 0) {
      i++;
      continue;
    }
    const begin = (tree.start[node] as number) - view.from;
    const left = leftOf(begin, scale, width);
    const right = rightOf(begin + weight, scale, width);
    // The frames behind a sliver that end in the same pixel share its cell.
    const next =
      right > left ? i + 1 : Math.min(behind, nextEndingBehind(tree, level, view.from + (left + 0.5) / scale, i + 1));
    cells.push(left, Math.max(right, left + 1), i, next);
    i = next;
  }
  return Int32Array.from(cells);
}

/**
 * Tells the pixels of a row in which a frame matches, from left to right; some may be told more than once. `cells` are
 * the row's, in the same range and width: they are asked for only where hits are many.
 */
export function hitPixels(
  tree: Tree,
  depth: number,
  view: View,
  width: number,
  { hits, few }: Pick<Search, "hits" | "few">,
  cells: () => Cells,
  found: (left: number, right: number) => void,
): void {
  if (few === null) hitCells(tree, depth, hits, cells(), found);
  else fewHits(tree, depth, view, width, few, found);
}

function hitCells(
  { levels, weight }: Tree,
  depth: number,
  hits: Matching,
  cells: Cells,
  found: (left: number, right: number) => void,
): void {
  const level = levels[depth] as Int32Array;
  for (let c = 0; c < cells.length; c += NUMBERS) {
    const behind = cells[c + 3] as number;
    for (let i = cells[c + 2] as number; i < behind; i++) {
      const node = level[i] as number;
      // Of a difference's frames that only the other side has, nothing is to be seen.
      if (!hits.has(node) || (weight[node] as number) <= 0) continue;
      found(cells[c] as number, cells[c + 1] as number);
      break;
    }
  }
}

function fewHits(
  { start, weight }: Tree,
  depth: number,
  view: View,
  width: number,
  { nodes, begin: first }: HitRows,
  found: (left: number, right: number) => void,
): void {
  const scale = width / (view.until - view.from);
  const slack = SLACK / scale;
  const behind = first[depth + 1] ?? 0;
  for (let k = first[depth] ?? behind; k < behind; k++) {
    const node = nodes[k] as number;
    const [begin, part] = [start[node] as number, weight[node] as number];
    if (part <= 0 || begin + part <= view.from + slack || begin >= view.until - slack) continue;
    const left = leftOf(begin - view.from, scale, width);
    found(left, Math.max(rightOf(begin - view.from + part, scale, width), left + 1));
  }
}

/** Rows beyond this number are forgotten: more are on no screen. */
const MOST_ROWS = 1_000;

interface Row {
  runs: Run[];
  /** Null until something was searched for. */
  cells: Cells | null;
}

/**
 * Rows as long as tree, range and width stay: a pointer that moves, and a search, change none of them. What is in
 * motion is not kept: tens of thousands of runs that live from one picture to the next cost more than making them.
 */
export class Runs {
  private tree: Tree | null = null;
  /** Null for a row that was asked for once in this view. */
  private readonly rows = new Map<number, Row | null>();
  private of: View & { width: number } = { from: 0, until: 0, width: 0 };

  /** The runs of a row, as `rowRuns` makes them. */
  at(tree: Tree, depth: number, { from, until }: View, width: number): Run[] {
    const { of } = this;
    const isSame = this.tree === tree && of.from === from && of.until === until && of.width === width;
    if (!isSame || this.rows.size >= MOST_ROWS) this.rows.clear();
    if (!isSame) [this.tree, this.of] = [tree, { from, until, width }];
    const known = this.rows.get(depth);
    if (known) return known.runs;
    const runs = rowRuns(tree, depth, { from, until }, width);
    this.rows.set(depth, known === null ? { runs, cells: null } : null);
    return runs;
  }

  /** The cells of a row whose runs were asked for just before. */
  cells(tree: Tree, depth: number, view: View, width: number): Cells {
    const row = this.rows.get(depth);
    const cells = row?.cells ?? cellsOf(tree, depth, view, width);
    if (row) row.cells = cells;
    return cells;
  }
}
