/**
 * The whole graph in little, with the part that is in sight. It is painted once for a tree, its colours and a search, at most
 * one row a pixel; moving about only moves the frame around what is seen.
 */
import { hitPixels, rowRuns, viewOf } from "../../logic/layout.ts";
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

/** A canvas for all letters of a search, and the pixels that it is given. */
interface Marked {
  search: Search;
  canvas: HTMLCanvasElement;
  context: CanvasRenderingContext2D | null;
  image: ImageData;
}

interface Picture {
  tree: Tree;
  colours: Colours;
  width: number;
  flame: boolean;
  rows: number;
  canvas: HTMLCanvasElement;
  /** The same, faint: what a search is marked on. */
  faint: ImageData | null;
  /** The newest search, marked. */
  searched: Marked | null;
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
      known.width === w &&
      known.flame === flame &&
      known.rows === span.rows;
    const picture = isFresh
      ? known
      : {
          tree,
          colours,
          width: w,
          flame,
          rows: span.rows,
          canvas: draw(scene, colours, span, w, h),
          faint: null,
          searched: null,
        };
    this.picture = picture;
    if (search !== null && picture.searched?.search !== search) {
      picture.faint ??= faintOf(picture.canvas, inkOf(scene.theme).ground);
      picture.searched = mark(picture.faint, scene, search, span, picture.searched);
    }
    context.drawImage((search === null ? null : picture.searched?.canvas) ?? picture.canvas, 0, 0);
    frame(context, scene, span, w, h);
  }
}

interface Line {
  row: number;
  top: number;
  height: number;
}

/** At most one line a pixel; of more rows some are left out. */
function linesOf({ flame }: Scene, span: Span, height: number): Line[] {
  const lines = Math.min(span.rows, height);
  return Array.from({ length: lines }, (_, line) => {
    const place = flame ? lines - 1 - line : line;
    const top = Math.floor((place / lines) * height);
    const tall = Math.max(1, Math.floor(((place + 1) / lines) * height) - top);
    return { row: span.first + Math.floor((line / lines) * span.rows), top, height: tall };
  });
}

function blank(width: number, height: number, ground: string): [HTMLCanvasElement, CanvasRenderingContext2D | null] {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { alpha: false });
  if (context !== null) {
    context.fillStyle = ground;
    context.fillRect(0, 0, width, height);
  }
  return [canvas, context];
}

function draw(scene: Scene, colours: Colours, span: Span, width: number, height: number): HTMLCanvasElement {
  const [canvas, context] = blank(width, height, inkOf(scene.theme).ground);
  if (context === null) return canvas;
  const whole = viewOf(scene.tree, ROOT);
  for (const { row, top, height: tall } of linesOf(scene, span, height)) {
    for (const run of rowRuns(scene.tree, row, whole, width)) {
      context.fillStyle = colours.of(run.node).fill;
      context.fillRect(run.left, top, run.right - run.left, tall);
    }
  }
  return canvas;
}

function faintOf(picture: HTMLCanvasElement, ground: string): ImageData {
  const { width, height } = picture;
  const [, context] = blank(width, height, ground);
  if (context === null) return new ImageData(width, height);
  context.globalAlpha = 0.35;
  context.drawImage(picture, 0, 0);
  return context.getImageData(0, 0, width, height);
}

/** What a search has found, on the faint picture. Each letter draws it anew: pixels are set, as rectangles would be tens of thousands. */
function mark(faint: ImageData, scene: Scene, search: Search, span: Span, before: Marked | null): Marked {
  const { width, height } = faint;
  const ink = inkOf(scene.theme);
  const { canvas, context, image } = before ?? markedOf(width, height, ink.ground);
  image.data.set(faint.data);
  const pixels = new Uint32Array(image.data.buffer);
  const hit = pixelOf(ink.hit);
  const whole = viewOf(scene.tree, ROOT);
  const marked = new Uint8Array(width);
  const thinnest = Math.max(1, Math.floor(scene.ratio));
  for (const { row, top, height: tall } of linesOf(scene, span, height)) {
    marked.fill(0);
    hitPixels(scene.tree, row, search.hits, whole, marked);
    // On dense screens a hit is no thinner than on others.
    for (let more = 1; more < thinnest; more++)
      for (let x = width - 1; x > 0; x--) if (marked[x - 1] === 1) marked[x] = 1;
    const bottom = Math.min(height, top + Math.max(thinnest, tall));
    for (let y = top * width; y < bottom * width; y += width)
      // With a neighbour on each side: the frame of what is in sight may cover a pixel.
      for (let x = 0; x < width; x++)
        if (marked[x] === 1 || marked[x - 1] === 1 || marked[x + 1] === 1) pixels[y + x] = hit;
  }
  context?.putImageData(image, 0, 0);
  return { search, canvas, context, image };
}

function markedOf(width: number, height: number, ground: string): Omit<Marked, "search"> {
  const [canvas, context] = blank(width, height, ground);
  return { canvas, context, image: new ImageData(width, height) };
}

/** `#rrggbb` as a pixel of an image, in the order of this machine's bytes. */
function pixelOf(colour: string): number {
  const bytes = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  return new Uint32Array(Uint8Array.of(...bytes, 255).buffer)[0] as number;
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
