/**
 * Draws the visible part of a flamegraph. In: the tree, the visible range, the rows in sight, size and ratio of the
 * canvas. It draws whole device pixels and at most one run a pixel and row, so its cost follows the screen.
 */
import {
  diffPaint,
  framePaint,
  kindOf,
  MARK,
  modulePaint,
  type Paint,
  type Pair,
  rowPaint,
  type Theme,
} from "../../logic/colour.ts";
import { hitPixels, type Runs } from "../../logic/flame/cells.ts";
import { type Run, type View, viewOf } from "../../logic/flame/layout.ts";
import type { Search } from "../../logic/flame/search.ts";
import { bareName, fitName } from "../../logic/text/names.ts";
import { isPlain, MOST_SHOWN, plainLine } from "../../logic/text/plain.ts";
import { isRow, titleOf } from "../../logic/tree/rows.ts";
import { changeOf, distance, frameName, kindName, moduleName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { stripes } from "../ui/stripes.ts";

/** CSS pixels. */
export const ROW = 19;
const TEXT_FROM = 26;
const PAD = 4;

export interface Scene {
  tree: Tree;
  view: View;
  /** The zoomed frame; the rows above it are its callers. */
  focus: number;
  search: Search | null;
  hovered: number | null;
  selected: number | null;
  /** Frames of this name (an index of the tree's texts) are outlined; -1 for none. */
  pointed: number;
  theme: Theme;
  /** Root at the bottom. */
  flame: boolean;
  width: number;
  height: number;
  scrollTop: number;
  /** The tree's row that is drawn first, and how many places for rows there are. */
  firstRow: number;
  rows: number;
  ratio: number;
  /** What was laid out before. */
  runs: Runs;
}

/** What a frame's colour tells. */
export type ColourBy = "kind" | "module" | "difference";

/** The range that a row shows: callers and callees of a sandwich are zoomed one at a time. */
export function viewAt({ tree, focus, view }: Pick<Scene, "tree" | "focus" | "view">, row: number): View {
  const isOtherSide = (row - tree.rootRow) * ((tree.depth[focus] as number) - tree.rootRow) < 0;
  return isOtherSide ? viewOf(tree, ROOT) : view;
}

export interface Ink {
  /** Over what is out of sight. */
  veil: string;
  ground: string;
  outline: string;
  hover: string;
  hit: string;
  font: string;
}

export function inkOf(theme: Theme): Ink {
  return theme === "light"
    ? {
        veil: "rgba(255,255,255,.55)",
        ground: "#ffffff",
        outline: "#0b57d0",
        hover: "rgba(0,0,0,.55)",
        hit: "#c026d3",
        font: "#10141c",
      }
    : {
        veil: "rgba(19,24,33,.6)",
        ground: "#131821",
        outline: "#9cc2ff",
        hover: "rgba(255,255,255,.7)",
        hit: "#f0abfc",
        font: "#f3f5fa",
      };
}

/** Colours by frame, remembered: a string a frame and redraw would be too many. */
export class Colours {
  private readonly paints: (Paint | undefined)[];
  private readonly tree: Tree;
  private readonly theme: Theme;
  private readonly by: ColourBy;
  private readonly pair: Pair;

  constructor(tree: Tree, theme: Theme, by: ColourBy, pair: Pair = "red-blue") {
    this.tree = tree;
    this.theme = theme;
    this.by = by;
    this.pair = pair;
    this.paints = new Array(tree.size);
  }

  fits(tree: Tree, theme: Theme, by: ColourBy, pair: Pair = "red-blue"): boolean {
    return this.tree === tree && this.theme === theme && this.by === by && this.pair === pair;
  }

  of(node: number): Paint {
    const known = this.paints[node];
    if (known !== undefined) return known;
    const paint = this.paintOf(node);
    this.paints[node] = paint;
    return paint;
  }

  private paintOf(node: number): Paint {
    const { tree, theme, by } = this;
    if (by === "difference" && tree.diff !== null) {
      const change = changeOf(tree, node);
      // A row that was not shown to differ keeps what tells it from frames.
      if (change === "same" && isRow(tree, node)) return rowPaint(theme);
      return diffPaint(change, tree.diff.strength[node] as number, theme, this.pair);
    }
    const kind = kindOf(kindName(tree, node), tree.inlined[node] === 1);
    if (by === "module") return modulePaint(kind, moduleName(tree, node), theme);
    return framePaint(kind, `${moduleName(tree, node)} ${frameName(tree, node)}`, theme);
  }
}

const fontOf = (ratio: number) =>
  `${11.5 * ratio}px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace`;

/** The widest character of the font decides how many surely fit; measured once a font. */
let characterWidth = 0;

/** Labels that were shortened before: most are drawn again, and shortening costs more than drawing. */
const labels = new Map<string, string>();
const MOST_LABELS = 20_000;

/** Names that are not what they look like, or very long, as they are drawn. */
const plainNames = new Map<string, string>();

function plainName(name: string): string {
  if (isPlain(name)) return name;
  let plain = plainNames.get(name);
  if (plain === undefined) {
    if (plainNames.size >= MOST_LABELS) plainNames.clear();
    const bare = name.length > MOST_SHOWN ? bareName(name) : name;
    plain = plainLine(bare.length > MOST_SHOWN ? name : bare, MOST_SHOWN);
    plainNames.set(name, plain);
  }
  return plain;
}

function labelOf(full: string, room: number): string {
  const name = plainName(full);
  if (name.length <= room) return name;
  const key = `${room} ${name}`;
  let label = labels.get(key);
  if (label === undefined) {
    if (labels.size >= MOST_LABELS) labels.clear();
    label = fitName(name, room);
    labels.set(key, label);
  }
  return label;
}

export function paint(context: CanvasRenderingContext2D, scene: Scene, colours: Colours): void {
  const { tree, width, height, ratio, rows, firstRow, scrollTop, flame, search } = scene;
  const ink = inkOf(scene.theme);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalAlpha = 1;
  context.fillStyle = ink.ground;
  context.fillRect(0, 0, Math.ceil(width * ratio), Math.ceil(height * ratio));
  context.font = fontOf(ratio);
  context.textBaseline = "middle";
  // A name that is written from right to left must not move what stands around it.
  context.direction = "ltr";
  if (characterWidth === 0) characterWidth = context.measureText("mmmmmmmmmm").width / 10 / ratio;
  const first = Math.max(0, Math.floor(scrollTop / ROW));
  const last = Math.min(rows - 1, Math.floor((scrollTop + height) / ROW));
  const pixels = Math.floor(width * ratio);
  for (let place = first; place <= last; place++) {
    const row = firstRow + (flame ? rows - 1 - place : place);
    const top = Math.round((place * ROW - scrollTop) * ratio);
    const bottom = Math.round(((place + 1) * ROW - scrollTop) * ratio) - Math.max(1, Math.round(ratio));
    const view = viewAt(scene, row);
    for (const run of scene.runs.at(tree, row, view, pixels))
      paintRun(context, scene, colours, ink, run, top, bottom - top);
    if (search !== null) paintHits(context, scene, search, row, ink, top, bottom);
  }
}

/** A bar below each frame that matches, also where the frame is thinner than a pixel. */
function paintHits(
  context: CanvasRenderingContext2D,
  scene: Scene,
  search: Search,
  row: number,
  ink: Ink,
  top: number,
  bottom: number,
): void {
  const { tree, runs, ratio, width } = scene;
  const [view, pixels] = [viewAt(scene, row), Math.floor(width * ratio)];
  const bar = Math.max(2, Math.round(2.5 * ratio));
  const least = Math.round(3 * ratio);
  const thinnest = Math.round(2 * ratio);
  const lastPlace = context.canvas.width - thinnest;
  context.fillStyle = ink.hit;
  // Neighbours that touch are one rectangle: where all frames match, they are tens of thousands.
  let [from, until, wasThin] = [0, 0, false];
  const flush = () => {
    // A thin hit is as high as its row: it would be lost as a dot.
    if (until > from) context.fillRect(from, wasThin ? top : bottom - bar, until - from, wasThin ? bottom - top : bar);
  };
  const cells = () => runs.cells(tree, row, view, pixels);
  hitPixels(tree, row, view, pixels, search, cells, (left, right) => {
    const isThin = right - left < least;
    if (isThin !== wasThin || left > until) {
      flush();
      [from, wasThin] = [isThin ? Math.min(left, lastPlace) : left, isThin];
    }
    until = isThin ? Math.max(right, left + thinnest) : right;
  });
  flush();
}

function paintRun(
  context: CanvasRenderingContext2D,
  scene: Scene,
  colours: Colours,
  ink: Ink,
  run: Run,
  top: number,
  height: number,
): void {
  const { tree, ratio, search } = scene;
  const { fill, text } = colours.of(run.node);
  const gap = run.single && run.right - run.left > 3 * ratio ? Math.max(1, Math.round(ratio / 2)) : 0;
  const width = run.right - run.left - gap;
  const faint = search !== null && !search.hits.has(run.node);
  const above = distance(tree, run.node) < distance(tree, scene.focus);
  context.globalAlpha = (faint ? 0.32 : 1) * (above ? 0.6 : 1) * (run.single ? 1 : 0.75);
  context.fillStyle = fill;
  context.fillRect(run.left, top, width, height);
  context.globalAlpha = 1;
  if (!run.single) return;
  let left = run.left + PAD * ratio;
  if (tree.diff !== null) left = paintMark(context, scene, run, left, top, height, text);
  const room = run.right - gap - PAD * ratio - left;
  const isLabel = isRow(tree, run.node);
  if (width >= TEXT_FROM * ratio) {
    const letters = Math.floor(room / ratio / characterWidth);
    const title = titleOf(tree, run.node);
    // Which label it is, a row tells where it can.
    const label = labelOf(title.length > letters ? frameName(tree, run.node) || title : title, letters);
    if (label !== "") {
      if (isLabel) context.font = `bold ${fontOf(ratio)}`;
      context.globalAlpha = faint ? 0.7 : 1;
      context.fillStyle = faint ? ink.font : text;
      context.fillText(label, left, top + height / 2 + ratio * 0.5, room);
      context.globalAlpha = 1;
      if (isLabel) context.font = fontOf(ratio);
    }
  }
  const isPointed = run.node === scene.hovered || (tree.name[run.node] === scene.pointed && !isLabel);
  const outlined = run.node === scene.selected ? ink.outline : isPointed ? ink.hover : null;
  if (outlined !== null) {
    const line = (run.node === scene.selected ? 2 : 1) * Math.max(1, Math.round(ratio));
    context.strokeStyle = outlined;
    context.lineWidth = line;
    context.strokeRect(run.left + line / 2, top + line / 2, Math.max(1, width - line), height - line);
  }
}

/** New and vanished frames are told by shape: stripes over the frame and a mark before its name. */
function paintMark(
  context: CanvasRenderingContext2D,
  scene: Scene,
  run: Run,
  left: number,
  top: number,
  height: number,
  text: string,
): number {
  const change = changeOf(scene.tree, run.node);
  const { ratio } = scene;
  if (change === "same") return left;
  const width = run.right - run.left;
  if ((change === "new" || change === "gone") && width >= 6 * ratio) {
    context.globalAlpha = 0.28;
    context.strokeStyle = text;
    context.lineWidth = ratio * 1.5;
    stripes(context, [run.left, top, width - 1, height], 8 * ratio, change === "gone");
    context.globalAlpha = 1;
  }
  // Where there is little room, the name says more than an arrow that repeats the colour.
  const least = change === "new" || change === "gone" ? 16 : 64;
  if (width < least * ratio) return left;
  context.fillStyle = text;
  context.fillText(MARK[change], left, top + height / 2 + ratio * 0.5);
  return left + 13 * ratio;
}
