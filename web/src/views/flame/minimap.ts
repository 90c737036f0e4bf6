/**
 * The whole graph in little, with the part that is in sight. It is painted once for a tree, its colours and a search,
 * at most one row a pixel; moving about only moves the frame around what is seen. With the root at the bottom it is the
 * same picture, turned over.
 */
import { type Cells, cellsOf, hitPixels } from "../../logic/flame/cells.ts";
import { rowRuns, viewOf } from "../../logic/flame/layout.ts";
import type { Search } from "../../logic/flame/search.ts";
import { ROOT, type Tree } from "../../logic/tree/tree.ts";
import { type Colours, inkOf, ROW, type Scene } from "./paint.ts";

/** CSS pixels. */
export const MAP_HEIGHT = 24;

/** Rows of the tree that the map shows. */
export interface Span {
  first: number;
  rows: number;
}

/** With the root on top. */
interface Picture {
  tree: Tree;
  colours: Colours;
  width: number;
  rows: number;
  canvas: HTMLCanvasElement;
  lines: Line[];
  /** The same, faint, in the order of this machine's bytes: what a search is marked on. */
  faint: Uint32Array | null;
  /** The newest search, and the pixels of all. */
  search: Search | null;
  pixels: ImageData;
  marked: HTMLCanvasElement;
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
      known.rows === span.rows;
    const picture = isFresh
      ? known
      : {
          tree,
          colours,
          width: w,
          rows: span.rows,
          lines: linesOf(scene, span, w, h),
          canvas: blank(w, h),
          faint: null,
          search: null,
          pixels: new ImageData(w, h),
          marked: blank(w, h),
        };
    if (!isFresh) draw(picture, scene, colours);
    this.picture = picture;
    if (search !== null && picture.search !== search) mark(picture, scene, search);
    context.imageSmoothingEnabled = false;
    if (flame) context.setTransform(1, 0, 0, -1, 0, h);
    context.drawImage(search === null ? picture.canvas : picture.marked, 0, 0);
    context.setTransform(1, 0, 0, 1, 0, 0);
    frame(context, scene, span, w, h);
  }
}

interface Line {
  row: number;
  top: number;
  height: number;
  cells: Cells;
}

/** At most one line a pixel; of more rows some are left out. */
function linesOf({ tree }: Scene, span: Span, width: number, height: number): Line[] {
  const lines = Math.min(span.rows, height);
  const whole = viewOf(tree, ROOT);
  return Array.from({ length: lines }, (_, line) => {
    const top = Math.floor((line / lines) * height);
    const tall = Math.max(1, Math.floor(((line + 1) / lines) * height) - top);
    const row = span.first + Math.floor((line / lines) * span.rows);
    return { row, top, height: tall, cells: cellsOf(tree, row, whole, width) };
  });
}

function blank(width: number, height: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  return canvas;
}

/** A search reads its pixels, which a graphics card would be slow to give. */
const contextOf = (canvas: HTMLCanvasElement) => canvas.getContext("2d", { alpha: false, willReadFrequently: true });

function draw({ canvas, lines }: Picture, scene: Scene, colours: Colours): void {
  const context = contextOf(canvas);
  if (context === null) return;
  context.fillStyle = inkOf(scene.theme).ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  const whole = viewOf(scene.tree, ROOT);
  for (const { row, top, height } of lines) {
    for (const run of rowRuns(scene.tree, row, whole, canvas.width)) {
      context.fillStyle = colours.of(run.node).fill;
      context.fillRect(run.left, top, run.right - run.left, height);
    }
  }
}

/** Of a picture's colours, this part stays beside that of the ground. */
const FAINT = 0.35;

function faintOf({ canvas: { width, height }, canvas }: Picture, ground: string): Uint32Array {
  const data = contextOf(canvas)?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray(width * height * 4);
  const below = bytesOf(ground);
  for (let i = 0; i < data.length; i++) data[i] = (data[i] as number) * FAINT + (below[i & 3] as number) * (1 - FAINT);
  return new Uint32Array(data.buffer);
}

/**
 * What a search has found, on the faint picture. Each letter draws it anew: pixels are set, as rectangles would be tens
 * of thousands.
 */
function mark(picture: Picture, scene: Scene, search: Search): void {
  const { lines, pixels: image, width } = picture;
  const ink = inkOf(scene.theme);
  picture.faint ??= faintOf(picture, ink.ground);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.set(picture.faint);
  const hit = new Uint32Array(bytesOf(ink.hit).buffer)[0] as number;
  // On dense screens a hit is no thinner than on others.
  const thinnest = Math.max(1, Math.floor(scene.ratio));
  const marked = new Uint8Array(width);
  const whole = viewOf(scene.tree, ROOT);
  for (const { row, top, height, cells } of lines) {
    marked.fill(0);
    const found = (left: number, right: number) => {
      // With a neighbour on each side: the frame of what is in sight may cover a pixel.
      const until = Math.max(right, left + thinnest) + 1;
      for (let x = Math.max(0, left - 1); x < until; x++) marked[x] = 1;
    };
    hitPixels(scene.tree, row, whole, width, search, () => cells, found);
    const bottom = Math.min(image.height, top + Math.max(thinnest, height)) * width;
    for (let y = top * width; y < bottom; y += width)
      for (let x = 0; x < width; x++) if (marked[x] === 1) pixels[y + x] = hit;
  }
  contextOf(picture.marked)?.putImageData(image, 0, 0);
  picture.search = search;
}

/** `#rrggbb` as the four bytes of a pixel. */
function bytesOf(colour: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(...[1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)), 255);
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
