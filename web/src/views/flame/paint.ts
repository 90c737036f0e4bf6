/**
 * Draws the visible part of a flamegraph. In: the tree, the visible range, the rows in sight, size and ratio of the
 * canvas. It draws whole device pixels and at most one run a pixel and row, so its cost follows the screen.
 */
import { type Change, diffPaint, framePaint, kindOf, MARK, type Paint, type Theme } from "../../logic/colour.ts";
import { type Run, rowRuns, type View } from "../../logic/layout.ts";
import { fitName } from "../../logic/names.ts";
import { frameName, kindName, moduleName, type Tree } from "../../logic/tree.ts";

/** CSS pixels. */
export const ROW = 19;
const TEXT_FROM = 26;
const PAD = 4;

export interface Scene {
  tree: Tree;
  view: View;
  /** The zoomed frame; the rows above it are its callers. */
  focus: number;
  hits: Uint8Array | null;
  hovered: number | null;
  selected: number | null;
  theme: Theme;
  /** Root at the bottom. */
  flame: boolean;
  width: number;
  height: number;
  scrollTop: number;
  rows: number;
  ratio: number;
}

interface Ink {
  ground: string;
  outline: string;
  hover: string;
  hit: string;
  font: string;
}

function inkOf(theme: Theme): Ink {
  return theme === "light"
    ? { ground: "#ffffff", outline: "#0b57d0", hover: "rgba(0,0,0,.55)", hit: "#c026d3", font: "#10141c" }
    : { ground: "#131821", outline: "#9cc2ff", hover: "rgba(255,255,255,.7)", hit: "#f0abfc", font: "#f3f5fa" };
}

/** Colours by frame, remembered: a string a frame and redraw would be too many. */
export class Colours {
  private readonly paints: (Paint | undefined)[];
  private readonly tree: Tree;
  private readonly theme: Theme;

  constructor(tree: Tree, theme: Theme) {
    this.tree = tree;
    this.theme = theme;
    this.paints = new Array(tree.size);
  }

  fits(tree: Tree, theme: Theme): boolean {
    return this.tree === tree && this.theme === theme;
  }

  of(node: number): Paint {
    const known = this.paints[node];
    if (known !== undefined) return known;
    const { tree, theme } = this;
    const kind = kindOf(kindName(tree, node), tree.inlined[node] === 1);
    const paint =
      tree.diff !== null
        ? diffPaint(changeOf(tree, node), tree.diff.strength[node] as number, theme)
        : framePaint(kind, `${moduleName(tree, node)} ${frameName(tree, node)}`, theme);
    this.paints[node] = paint;
    return paint;
  }
}

export function changeOf(tree: Tree, node: number): Change {
  return (tree.diff?.states[tree.diff.state[node] as number] ?? "same") as Change;
}

/** The widest character of the font decides how many surely fit; measured once a font. */
let characterWidth = 0;

export function paint(context: CanvasRenderingContext2D, scene: Scene, colours: Colours): void {
  const { width, height, ratio, rows, scrollTop, flame } = scene;
  const ink = inkOf(scene.theme);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = ink.ground;
  context.fillRect(0, 0, Math.ceil(width * ratio), Math.ceil(height * ratio));
  context.font = `${11.5 * ratio}px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace`;
  context.textBaseline = "middle";
  if (characterWidth === 0) characterWidth = context.measureText("mmmmmmmmmm").width / 10 / ratio;
  const first = Math.max(0, Math.floor(scrollTop / ROW));
  const last = Math.min(rows - 1, Math.floor((scrollTop + height) / ROW));
  for (let row = first; row <= last; row++) {
    const depth = flame ? rows - 1 - row : row;
    const top = Math.round((row * ROW - scrollTop) * ratio);
    const bottom = Math.round(((row + 1) * ROW - scrollTop) * ratio) - Math.max(1, Math.round(ratio));
    const runs = rowRuns(scene.tree, depth, scene.view, Math.floor(width * ratio));
    for (const run of runs) paintRun(context, scene, colours, ink, run, top, bottom - top);
  }
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
  const { tree, ratio, hits } = scene;
  const { fill, text } = colours.of(run.node);
  const gap = run.single && run.right - run.left > 3 * ratio ? Math.max(1, Math.round(ratio / 2)) : 0;
  const width = run.right - run.left - gap;
  const hit = hits !== null && hits[run.node] === 1;
  const above = (tree.depth[run.node] as number) < (tree.depth[scene.focus] as number);
  context.globalAlpha = (hits !== null && !hit ? 0.32 : 1) * (above ? 0.6 : 1) * (run.single ? 1 : 0.75);
  context.fillStyle = fill;
  context.fillRect(run.left, top, width, height);
  context.globalAlpha = 1;
  if (hit) {
    context.fillStyle = ink.hit;
    const bar = Math.max(2, Math.round(2.5 * ratio));
    context.fillRect(run.left, top + height - bar, width, bar);
  }
  if (!run.single) return;
  let left = run.left + PAD * ratio;
  if (tree.diff !== null) left = paintMark(context, scene, run, left, top, height, text);
  const room = run.right - gap - PAD * ratio - left;
  if (width >= TEXT_FROM * ratio) {
    const name = frameName(tree, run.node);
    const label = fitName(name, Math.floor(room / ratio / characterWidth));
    if (label !== "") {
      context.globalAlpha = hits !== null && !hit ? 0.7 : 1;
      context.fillStyle = hits !== null && !hit ? ink.font : text;
      context.fillText(label, left, top + height / 2 + ratio * 0.5);
      context.globalAlpha = 1;
    }
  }
  const outlined = run.node === scene.selected ? ink.outline : run.node === scene.hovered ? ink.hover : null;
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
    context.save();
    context.beginPath();
    context.rect(run.left, top, width - 1, height);
    context.clip();
    context.globalAlpha = 0.28;
    context.strokeStyle = text;
    context.lineWidth = ratio * 1.5;
    context.beginPath();
    const step = 8 * ratio;
    for (let x = run.left - height; x < run.right; x += step) {
      const lean = change === "new" ? 0 : height;
      context.moveTo(x + lean, top + height);
      context.lineTo(x + height - lean, top);
    }
    context.stroke();
    context.restore();
  }
  // Where there is little room, the name says more than an arrow that repeats the colour.
  const least = change === "new" || change === "gone" ? 16 : 64;
  if (width < least * ratio) return left;
  context.fillStyle = text;
  context.fillText(MARK[change], left, top + height / 2 + ratio * 0.5);
  return left + 13 * ratio;
}
