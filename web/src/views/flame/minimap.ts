/**
 * The whole graph in little, with the part that is in sight. It is painted once for a tree, its colours and a search, at most
 * one row a pixel; moving about only moves the frame around what is seen.
 */
import { rowRuns, runsOf, viewOf } from "../../logic/layout.ts";
import type { Search } from "../../logic/search.ts";
import { ROOT, type Tree } from "../../logic/tree.ts";
import { type Colours, inkOf, ROW, type Scene } from "./paint.ts";

/** CSS pixels. */
export const MAP_HEIGHT = 40;

/** Rows of the tree that the map shows. */
export interface Span {
  first: number;
  rows: number;
}

interface Picture {
  tree: Tree;
  colours: Colours;
  search: Search | null;
  width: number;
  flame: boolean;
  rows: number;
  canvas: HTMLCanvasElement;
}

export class Minimap {
  private picture: Picture | null = null;

  /** `span`: all rows; the scene tells which part of them is in sight. */
  paint(target: HTMLCanvasElement, scene: Scene, colours: Colours, span: Span): void {
    const { ratio, width } = scene;
    const [w, h] = [Math.floor(width * ratio), Math.floor(MAP_HEIGHT * ratio)];
    if (target.width !== w || target.height !== h) [target.width, target.height] = [w, h];
    const context = target.getContext("2d", { alpha: false });
    if (context === null || w === 0) return;
    const { tree, search, flame } = scene;
    const known = this.picture;
    const isFresh =
      known !== null &&
      known.tree === tree &&
      known.colours === colours &&
      known.search === search &&
      known.width === w &&
      known.flame === flame &&
      known.rows === span.rows;
    const picture = isFresh
      ? known
      : { tree, colours, search, width: w, flame, rows: span.rows, canvas: draw(scene, colours, span, w, h) };
    this.picture = picture;
    context.drawImage(picture.canvas, 0, 0);
    frame(context, scene, span, w, h);
  }
}

function draw(scene: Scene, colours: Colours, span: Span, width: number, height: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) return canvas;
  const { tree, search, flame } = scene;
  const ink = inkOf(scene.theme);
  context.fillStyle = ink.ground;
  context.fillRect(0, 0, width, height);
  const whole = viewOf(tree, ROOT);
  const lines = Math.min(span.rows, height);
  for (let line = 0; line < lines; line++) {
    const row = span.first + Math.floor((line / lines) * span.rows);
    const place = flame ? lines - 1 - line : line;
    const top = Math.floor((place / lines) * height);
    const tall = Math.max(1, Math.floor(((place + 1) / lines) * height) - top);
    context.globalAlpha = search === null ? 1 : 0.35;
    for (const run of rowRuns(tree, row, whole, width)) {
      context.fillStyle = colours.of(run.node).fill;
      context.fillRect(run.left, top, run.right - run.left, tall);
    }
    context.globalAlpha = 1;
    if (search === null) continue;
    context.fillStyle = ink.hit;
    for (const run of runsOf(tree, search.levels[row], whole, width))
      context.fillRect(run.left, top, Math.max(scene.ratio, run.right - run.left), Math.max(scene.ratio, tall));
  }
  return canvas;
}

/** The part in sight stays as it is, the rest is veiled. */
function frame(context: CanvasRenderingContext2D, scene: Scene, span: Span, width: number, height: number): void {
  const { view, tree, ratio } = scene;
  const ink = inkOf(scene.theme);
  const { from, until } = viewOf(tree, ROOT);
  const x = (position: number) => ((position - from) / Math.max(until - from, Number.MIN_VALUE)) * width;
  const y = (place: number) => (place / Math.max(1, span.rows)) * height;
  const offset = scene.flame ? span.rows - scene.rows - (scene.firstRow - span.first) : scene.firstRow - span.first;
  const first = offset + scene.scrollTop / ROW;
  const [left, top] = [Math.floor(x(view.from)), Math.max(0, Math.floor(y(first)))];
  const right = Math.max(left + 2 * ratio, Math.ceil(x(view.until)));
  const bottom = Math.min(height, Math.max(top + 2 * ratio, Math.ceil(y(first + scene.height / ROW))));
  context.fillStyle = ink.veil;
  context.fillRect(0, 0, width, top);
  context.fillRect(0, bottom, width, height - bottom);
  context.fillRect(0, top, left, bottom - top);
  context.fillRect(right, top, width - right, bottom - top);
  context.strokeStyle = ink.outline;
  context.lineWidth = Math.max(1, ratio);
  context.strokeRect(left + 0.5, top + 0.5, Math.max(1, right - left - 1), Math.max(1, bottom - top - 1));
}
