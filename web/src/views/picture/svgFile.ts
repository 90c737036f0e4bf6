/** The graph in sight as SVG: rows, runs and colours are those of the canvas, by the same layout. */
import type { Pair, Theme } from "../../logic/colour.ts";
import { hitPixels, Runs } from "../../logic/flame/cells.ts";
import { rowsInSight, type View } from "../../logic/flame/layout.ts";
import type { Search } from "../../logic/flame/search.ts";
import { escaped } from "../../logic/picture/escape.ts";
import type { Fact } from "../../logic/picture/facts.ts";
import { fitName } from "../../logic/text/names.ts";
import { plainLine } from "../../logic/text/plain.ts";
import { distance, frameName, type Tree } from "../../logic/tree/tree.ts";
import { type ColourBy, Colours, inkOf, ROW, viewAt } from "../flame/paint.ts";

export interface PictureScene {
  tree: Tree;
  focus: number;
  /** What is in sight. */
  view: View;
  search: Search | null;
  theme: Theme;
  colourBy: ColourBy;
  pair: Pair;
  flame: boolean;
  /** CSS pixels. */
  width: number;
  /** What a frame stands for, in a sentence. */
  textOf: (node: number) => string;
}

const LETTER = 7;
const FACT_ROW = 15;
const PAD = 8;
const NAME_ROOM = 400;
const MOST_FACT = 240;

export function svgFile(scene: PictureScene, title: string, facts: readonly Fact[]): string {
  const { tree, focus, search, theme, flame, width } = scene;
  const ink = inkOf(theme);
  const colours = new Colours(tree, theme, scene.colourBy, scene.pair);
  const runs = new Runs();
  const { first, last } = rowsInSight(tree, focus, width, 1);
  const rows = last - first + 1;
  const head = PAD + (facts.length + 1) * FACT_ROW + PAD;
  const height = head + rows * ROW + PAD;
  const out: string[] = [];
  const line = (text: string, at: number, weight: string) =>
    out.push(
      `<text x="${PAD}" y="${PAD + at * FACT_ROW + 11}" fill="${ink.font}" font-weight="${weight}" ` +
        `font-family="system-ui, sans-serif" font-size="12">${escaped(text, MOST_FACT)}</text>`,
    );
  line(title, 0, "bold");
  facts.forEach(([name, text], i) => {
    line(`${name}: ${text}`, i + 1, "normal");
  });
  for (let row = first; row <= last; row++) {
    const place = flame ? last - row : row - first;
    const top = head + place * ROW;
    const view = viewAt(scene, row);
    for (const run of runs.at(tree, row, view, width)) {
      const { fill, text } = colours.of(run.node);
      const isFaint = search !== null && !search.hits.has(run.node);
      const isAbove = distance(tree, run.node) < distance(tree, focus);
      const alpha = (isFaint ? 0.32 : 1) * (isAbove ? 0.6 : 1) * (run.single ? 1 : 0.75);
      const gap = run.single && run.right - run.left > 3 ? 1 : 0;
      const room = Math.floor((run.right - run.left - PAD) / LETTER);
      const label = run.single ? fitName(plainLine(frameName(tree, run.node), NAME_ROOM), room) : "";
      out.push(
        `<g><title>${escaped(scene.textOf(run.node))}</title>` +
          `<rect x="${run.left}" y="${top}" width="${run.right - run.left - gap}" height="${ROW - 1}" fill="${fill}"` +
          `${alpha < 1 ? ` fill-opacity="${Number(alpha.toFixed(3))}"` : ""}/>` +
          (label === ""
            ? ""
            : `<text x="${run.left + 4}" y="${top + 13}" fill="${isFaint ? ink.font : text}">${escaped(label)}</text>`) +
          "</g>",
      );
    }
    if (search === null) continue;
    const cells = () => runs.cells(tree, row, view, width);
    hitPixels(tree, row, view, width, search, cells, (left, right) => {
      out.push(
        `<rect class="hit" x="${left}" y="${top + ROW - 4}" width="${Math.max(1, right - left)}" height="3" fill="${ink.hit}"/>`,
      );
    });
  }
  return `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="11.5">
<title>${escaped(title)}</title>
<rect width="100%" height="100%" fill="${ink.ground}"/>
${out.join("\n")}
</svg>
`;
}
