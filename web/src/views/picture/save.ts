/** Saves what the page shows as a file that tells on its own what was asked. */
import { effect } from "@preact/signals";
import { sumsOfSides } from "../../logic/compare/norm.ts";
import { partOf, viewOf } from "../../logic/flame/layout.ts";
import { patternName } from "../../logic/flame/search.ts";
import {
  coresOfSides,
  frameText,
  type Measure,
  measureOf,
  measureOfPair,
  type WindowMeasure,
} from "../../logic/graph/measure.ts";
import {
  type Fact,
  factsOfPair,
  factsOfPreceding,
  factsOfWindow,
  factsOfWoken,
  windowText,
} from "../../logic/picture/facts.ts";
import { fileFrames } from "../../logic/picture/frames.ts";
import type { TextTable } from "../../logic/picture/textTable.ts";
import { count, percent } from "../../logic/text/format.ts";
import { plainLine } from "../../logic/text/plain.ts";
import { timeWords } from "../../logic/text/unit.ts";
import { frameName, ROOT } from "../../logic/tree/tree.ts";
import { askedFor, page } from "../../state/address/page.ts";
import { comparing, diff, sideNames } from "../../state/answers/compare.ts";
import { flamegraph, single } from "../../state/answers/explore.ts";
import { info } from "../../state/answers/server.ts";
import { beforeHits, isBeforeShown, laneQuery } from "../../state/answers/timeline.ts";
import { say } from "../../state/moments/said.ts";
import { range } from "../../state/question/question.ts";
import { colourPair } from "../../state/screen/pair.ts";
import { searchResult } from "../../state/screen/search.ts";
import { theme } from "../../state/screen/theme.ts";
import { focus, tree, wholeSamples } from "../../state/screen/tree.ts";
import { counted } from "../../state/screen/units.ts";
import { Colours } from "../flame/paint.ts";
import { htmlFile } from "./htmlFile.ts";
import { pngFile } from "./pngFile.ts";
import { type PictureScene, svgFile } from "./svgFile.ts";

export type FileKind = "html" | "png" | "svg";

const NARROWEST = 480;
const NAME_ROOM = 200;
const CHARTS = [
  ["timechart", "The chart over time"],
  ["heatmap", "Sub-second heatmap"],
  ["waits", "Waits by thread"],
  ["timeline", "Sample timeline"],
] as const;

/** The answer of one window whose graph is on the screen: on a timeline, of what ran before what is looked for. */
function windowNow() {
  const { view } = page.peek();
  if (view === "threads" || view === "nodes") return null;
  if (view !== "timeline") return flamegraph.data.peek();
  const answer = isBeforeShown.peek() ? beforeHits.data.peek() : null;
  return answer === null || answer.samples === 0 ? null : answer;
}

/** What samples of the graph stand for; null where the view has no graph. */
function measureNow(): WindowMeasure | null {
  let measure: Measure | null = null;
  if (comparing.peek()) {
    const answer = diff.data.peek();
    if (answer !== null)
      measure = measureOfPair("", answer.period_ns, answer.normalize, coresOfSides(answer), sumsOfSides(answer));
  } else {
    const answer = windowNow();
    if (answer !== null) measure = measureOf("", answer);
  }
  if (measure === null) return null;
  return {
    ...measure,
    samples: wholeSamples.peek(),
    unit: counted.peek(),
    choice: page.peek().unit,
    sideNames: sideNames.peek(),
  };
}

function graphScene(measure: WindowMeasure | null): PictureScene | null {
  const shown = tree.peek().tree;
  if (shown === null || measure === null) return null;
  const { part, colour, layout } = page.peek();
  const at = focus.peek().node;
  const box = document.querySelector<HTMLElement>('[data-testid="flamegraph"]');
  return {
    tree: shown,
    focus: at,
    view: partOf(part, viewOf(shown, at)),
    search: searchResult.peek(),
    theme: theme.peek(),
    colourBy: colour || (shown.diff ? "difference" : "module"),
    pair: colourPair.peek(),
    flame: layout === "flame",
    width: Math.max(NARROWEST, box?.clientWidth ?? 0),
    textOf: (node) => frameText(shown, node, at, measure),
  };
}

function answerFacts(): Fact[] {
  if (comparing.peek()) {
    const answer = diff.data.peek();
    return answer === null ? [] : factsOfPair(answer);
  }
  const { view, query, before, hit } = page.peek();
  // Of agents the table says all; no window is chosen there.
  if (view === "nodes") return [];
  const lane = view === "timeline" && laneQuery.peek() !== query ? laneQuery.peek() : "";
  const ofLane: Fact[] = lane === "" ? [] : [["Timeline of", plainLine(lane, NAME_ROOM)]];
  const answer = windowNow();
  if (answer !== null && view === "timeline")
    return [...ofLane, ...factsOfPreceding(answer, Number(before), patternName(hit))];
  if (answer !== null) return factsOfWindow(answer);
  return [...ofLane, ["Selector", plainLine(query || "{}", NAME_ROOM)], ["Window", windowText(range.peek())]];
}

function lookFacts(scene: PictureScene | null): Fact[] {
  const { match, transform, part } = page.peek();
  const server = info.data.peek();
  return [
    ...(scene !== null && scene.focus !== ROOT
      ? ([["Zoomed to", plainLine(frameName(scene.tree, scene.focus), NAME_ROOM)]] as const)
      : []),
    ...(part === "" ? [] : ([["In sight", `${part} millionths of its width`]] as const)),
    ...(match === "" ? [] : ([["Searched for", plainLine(match, NAME_ROOM)]] as const)),
    ...(transform === "" ? [] : ([["Changed by", plainLine(transform, NAME_ROOM)]] as const)),
    ...(scene === null || single.peek() === null ? [] : factsOfWoken(page.peek())),
    ["Address", plainLine(location.href, 2_000)],
    ["Saved", `${new Date().toISOString()}, by Stakeout ${server?.version ?? "of an unknown version"}`],
  ];
}

function titleText(): string {
  const { view, query } = page.peek();
  const isOfAll = query === "" || view === "nodes";
  return `Stakeout, ${view}${isOfAll ? "" : `: ${plainLine(query, NAME_ROOM)}`}`;
}

function give(content: Blob, kind: FileKind): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  const moment = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
  link.download = `stakeout-${page.peek().view}-${moment}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * The graph's answer may still be on its way: a file without it, or with the one before, would not say so. False where
 * something else was chosen meanwhile: nobody wanted that as a file.
 */
async function answered(): Promise<boolean> {
  const { view } = page.peek();
  const wanted = comparing.peek() ? diff : view === "timeline" ? beforeHits : flamegraph;
  if (!wanted.loading.peek()) return true;
  const asked = askedFor.peek();
  say("Saved as soon as the graph is there.");
  let end = () => {};
  await new Promise<void>((resolve) => {
    end = effect(() => {
      if (!wanted.loading.value || askedFor.value !== asked) resolve();
    });
  });
  end();
  if (askedFor.peek() === asked) return true;
  say("Nothing was saved: something else was chosen before the graph was there.", true);
  return false;
}

/** Views without a graph are facts, and their charts as they are on the screen, or their table. */
export async function saveFile(kind: FileKind, tableOf: (() => TextTable) | null): Promise<void> {
  if (!(await answered())) return;
  const measure = measureNow();
  const scene = graphScene(measure);
  const title = titleText();
  const facts = [...answerFacts(), ...lookFacts(scene)];
  const charts = CHARTS.flatMap(([id, alt]) => {
    const canvas = document.querySelector<HTMLCanvasElement>(`canvas[data-testid="${id}"]`);
    return canvas === null ? [] : [[alt, canvas] as const];
  });
  if (kind === "png") {
    const width = scene?.width ?? Math.max(NARROWEST, document.body.clientWidth);
    const pixels = await pngFile(
      scene,
      theme.peek(),
      width,
      title,
      facts,
      charts.map(([, canvas]) => canvas),
    );
    if (pixels !== null) give(pixels, kind);
  } else if (kind === "svg") {
    if (scene !== null) give(new Blob([svgFile(scene, title, facts)], { type: "image/svg+xml" }), kind);
  } else {
    const images = charts.map(([alt, canvas]) => [alt, canvas.toDataURL()] as const);
    const { graph, told } = scene === null || measure === null ? NO_GRAPH : graphData(scene, measure);
    const table = tableOf?.() ?? null;
    const parts = { title, facts: [...facts, ...told, ...leftOut(table)], images, graph, table };
    give(new Blob([htmlFile({ ...parts, dark: theme.peek() === "dark" })], { type: "text/html" }), kind);
  }
}

function leftOut(table: TextTable | null): Fact[] {
  if (table === null || table.rows.length === table.all) return [];
  return [["Left out", `of ${count(table.all)} rows those behind the first ${count(table.rows.length)}`]];
}

const NO_GRAPH = { graph: null, told: [] as Fact[] };

function graphData(scene: PictureScene, { secondsPerSample, unit }: WindowMeasure) {
  const { tree: shown, colourBy, pair } = scene;
  const light = new Colours(shown, "light", colourBy, pair);
  const dark = new Colours(shown, "dark", colourBy, pair);
  const frames = fileFrames(shown, (node) => {
    const [a, b] = [light.of(node), dark.of(node)];
    return [a.fill, a.text, b.fill, b.text];
  });
  const focusName = `${frames.names.indexOf(plainLine(frameName(shown, scene.focus), 4_000))}`;
  const start = shown.start[scene.focus] as number;
  const row = shown.depth[scene.focus] as number;
  const kept = frames.start.findIndex(
    (begin, i) => begin === start && frames.row[i] === row && String(frames.name[i]) === focusName,
  );
  const told: Fact[] =
    frames.parent.length === frames.all
      ? []
      : [
          [
            "Left out",
            `of ${count(frames.all)} frames those below ${percent(frames.least)} of the whole; sums are of all`,
          ],
        ];
  return {
    told,
    graph: {
      frames,
      focus: Math.max(ROOT, kept),
      match: page.peek().match,
      flame: scene.flame,
      dark: scene.theme === "dark",
      secondsPerSample,
      timeWords: timeWords(unit),
    },
  };
}
