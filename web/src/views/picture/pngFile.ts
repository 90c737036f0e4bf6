/** What is in sight as PNG: facts, charts as they are on the screen, the graph drawn by the canvas's own code. */
import { Runs } from "../../logic/flame/cells.ts";
import { rowsInSight } from "../../logic/flame/layout.ts";
import type { Fact } from "../../logic/picture/facts.ts";
import { Colours, inkOf, paint, ROW } from "../flame/paint.ts";
import type { PictureScene } from "./svgFile.ts";

const RATIO = 2;
const FACT_ROW = 16;
const PAD = 8;
/** No browser takes a longer canvas. */
const LONGEST = 16_000;

function graphCanvas(scene: PictureScene): HTMLCanvasElement {
  const { tree, focus, width } = scene;
  const { first, last } = rowsInSight(tree, focus, width, 1);
  const rows = last - first + 1;
  const height = Math.min(rows * ROW, Math.floor(LONGEST / RATIO / 2));
  const canvas = document.createElement("canvas");
  canvas.width = Math.floor(width * RATIO);
  canvas.height = Math.floor(height * RATIO);
  const context = canvas.getContext("2d", { alpha: false });
  if (context !== null)
    paint(
      context,
      {
        ...scene,
        ...{ hovered: null, selected: null, pointed: -1, height, scrollTop: 0, firstRow: first, rows },
        ...{ ratio: RATIO, runs: new Runs() },
      },
      new Colours(tree, scene.theme, scene.colourBy, scene.pair),
    );
  return canvas;
}

export function pngFile(
  scene: PictureScene | null,
  theme: PictureScene["theme"],
  width: number,
  title: string,
  facts: readonly Fact[],
  charts: readonly HTMLCanvasElement[],
): Promise<Blob | null> {
  const ink = inkOf(theme);
  const pictures = [...charts, ...(scene === null ? [] : [graphCanvas(scene)])];
  const wide = Math.floor(width * RATIO);
  const heightOf = (one: HTMLCanvasElement) => Math.round((one.height * wide) / Math.max(1, one.width));
  const head = (PAD * 2 + (facts.length + 1) * FACT_ROW) * RATIO;
  const canvas = document.createElement("canvas");
  canvas.width = wide;
  canvas.height = Math.min(LONGEST, head + pictures.reduce((sum, one) => sum + heightOf(one) + PAD * RATIO, 0));
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) return Promise.resolve(null);
  context.fillStyle = ink.ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = ink.font;
  context.textBaseline = "top";
  context.direction = "ltr";
  [title, ...facts.map(([name, text]) => `${name}: ${text}`)].forEach((text, i) => {
    context.font = `${i === 0 ? "bold " : ""}${12 * RATIO}px system-ui, sans-serif`;
    context.fillText(text, PAD * RATIO, (PAD + i * FACT_ROW) * RATIO, wide - 2 * PAD * RATIO);
  });
  let top = head;
  for (const one of pictures) {
    context.drawImage(one, 0, top, wide, heightOf(one));
    top += heightOf(one) + PAD * RATIO;
  }
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
