/**
 * What a person waits for, in a real browser against a real server: the first picture, and each frame while moving
 * about. In: `STAKEOUT_URL`, sizes, repetitions, a folder with other flamegraphs (`STAKEOUT_BENCH_*`). Out: one JSON
 * object a line into `STAKEOUT_BENCH_OUT`, times in milliseconds.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { type APIRequestContext, type Browser, type BrowserType, expect, type Page, test } from "@playwright/test";
import { ingest, SIZES, tell, within } from "./shared.ts";
import { stacksOf } from "./synthetic.ts";

const REPEAT = Number(process.env.STAKEOUT_BENCH_REPEAT ?? "5");
const PEERS = process.env.STAKEOUT_BENCH_PEERS ?? "";
/** How long a peer may take for a picture. */
const PATIENCE_MS = 60_000;
const RESTED_MS = 600;
const UNLIMITED = [
  "--no-sandbox",
  "--disable-background-networking",
  "--disable-frame-rate-limit",
  "--disable-gpu-vsync",
];

const service = (nodes: number) => `bench-${nodes}`;
/** Services that have the same tree among them, each a part of it: rows of labels stand above each. */
const ROWS = 8;
const rowsService = (nodes: number, part: number) => `bench-rows-${nodes}-${part}`;
const address = (query: string) => within({ query: `{service="${query}"}` });
const rowsAddress = (nodes: number) =>
  within({ query: `{service=~"${rowsService(nodes, 0).slice(0, -1)}[0-9]"}`, group: "service" });

async function ingestRows(request: APIRequestContext, nodes: number): Promise<void> {
  const stacks = stacksOf(nodes);
  const each = Math.ceil(stacks.length / ROWS);
  for (let part = 0; part < ROWS; part++)
    await ingest(request, rowsService(nodes, part), stacks.slice(part * each, (part + 1) * each));
}

/**
 * Runs `step` in one frame after the other, and gives the time from each frame to the next. A pixel changes in each:
 * Chromium begins the next frame as soon as one is done only where something was drawn, and else after a 60th of a
 * second, whatever the page did.
 */
async function frames(page: Page, count: number, step: string): Promise<number[]> {
  // What follows a move once hands rest, as the address does, is not part of the next one.
  await page.waitForTimeout(RESTED_MS);
  return page.evaluate(
    ([steps, body]) =>
      new Promise<number[]>((resolve) => {
        const act = new Function("k", body as string);
        const taken: number[] = [];
        let [last, k] = [0, 0];
        const pixel = document.body.appendChild(document.createElement("i"));
        Object.assign(pixel.style, { position: "fixed", top: "0", left: "0", width: "1px", height: "1px" });
        const tick = () => {
          pixel.style.background = k % 2 === 0 ? "#000" : "#fff";
          const now = performance.now();
          if (last > 0) taken.push(now - last);
          last = now;
          if (k === steps) {
            pixel.remove();
            return resolve(taken);
          }
          act(k++);
          requestAnimationFrame(tick);
        };
        requestAnimationFrame(tick);
      }),
    [count, step] as const,
  );
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

const spread = (values: readonly number[]) => ({
  frames: values.length,
  median: percentile(values, 0.5),
  p95: percentile(values, 0.95),
  max: Math.max(...values),
});

async function heap(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const usage = (await session.send("Runtime.getHeapUsage")) as { usedSize: number; backingStorageSize?: number };
  await session.detach();
  return usage.usedSize + (usage.backingStorageSize ?? 0);
}

/** From the change of the selection, as a click makes it, until the picture is on the screen. */
async function firstPicture(
  page: Page,
  to: string,
): Promise<{ ms: number; nodes: number; server: number; blocked: number }> {
  await page.goto(address("nothing"));
  await expect(page.getByText("No samples in this window.")).toBeVisible();
  return page.evaluate(
    (url) =>
      new Promise<{ ms: number; nodes: number; server: number; blocked: number }>((resolve) => {
        const begin = performance.now();
        // The longest time in which the page did not answer to hands; the browser tells those of 50 ms and more.
        let blocked = 0;
        new PerformanceObserver((list) => {
          for (const { startTime, duration } of list.getEntries())
            if (startTime >= begin) blocked = Math.max(blocked, duration);
        }).observe({ type: "longtask" });
        new PerformanceObserver((list) => {
          const mark = list.getEntries().find(({ startTime }) => startTime >= begin) as PerformanceMark | undefined;
          if (mark === undefined) return;
          requestAnimationFrame(() =>
            setTimeout(() => {
              const ms = performance.now() - begin;
              const all = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
              const asked = all.filter(({ name }) => name.includes("/flamegraph")).at(-1);
              const server = asked === undefined ? 0 : asked.responseEnd - begin;
              // A long task is told of after it has ended.
              setTimeout(() => resolve({ ms, nodes: mark.detail as number, server, blocked }), 100);
            }),
          );
        }).observe({ type: "mark" });
        history.pushState(null, "", url);
        dispatchEvent(new PopStateEvent("popstate"));
      }),
    to,
  );
}

const CANVAS = `const canvas = document.querySelector("[data-testid=flamegraph]");
  const box = canvas.closest(".flame-scroll");
  const { left, top, width } = canvas.getBoundingClientRect();
  const at = { bubbles: true, cancelable: true, clientX: left + width * 0.4, clientY: top + 60 };
  const wheel = (more) => canvas.dispatchEvent(new WheelEvent("wheel", { ...at, ...more }));`;

/** The k-th letter of a search that is typed and taken back. */
const letter = (
  k: string,
) => `const input = document.querySelector("[data-testid=search]"); const text = "module_17::type1"; const k_ = ${k};
     input.value = k_ < 16 ? text.slice(0, k_ + 1) : text.slice(0, 30 - k_);
     input.dispatchEvent(new Event("input", { bubbles: true }));`;

const MOVES = {
  /** Into the width around one place and out again. */
  zoom: [60, `${CANVAS} wheel({ deltaY: k < 30 ? -50 : 50, ctrlKey: true });`],
  /** Down the rows, and along the width of a part. */
  pan: [
    80,
    `${CANVAS} if (k < 8) wheel({ deltaY: -50, ctrlKey: true });
     else if (k < 40) box.scrollTop += 9; else wheel({ deltaX: k % 2 ? 40 : 25 });`,
  ],
  /** A letter a frame: the table waits until they come slower. */
  search: [30, letter("k")],
  /** A letter in each third frame, still faster than hands: the table follows behind each. */
  typing: [90, `if (k % 3 > 0) return; ${letter("k / 3")}`],
} as const;

/** What a browser fetched, compressed as it came, until the page was there. */
async function bundle(page: Page): Promise<number> {
  await page.goto(address("nothing"));
  await expect(page.getByText("No samples in this window.")).toBeVisible();
  return page.evaluate(() => {
    const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const own = all.filter(({ name }) => !name.includes("/api/")) as PerformanceResourceTiming[];
    return own.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  });
}

/** A browser whose frames come as fast as they are done: what lies between two of them is what one takes. */
async function unlimited(chromium: BrowserType, more: readonly string[] = ["--disable-gpu"]): Promise<Browser> {
  const executablePath = process.env.STAKEOUT_CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: [...UNLIMITED, ...more] });
}

test("this page", async ({ page, request, playwright, baseURL }) => {
  const browser = await unlimited(playwright.chromium);
  tell({ who: "stakeout", what: "bundle", bytes: await bundle(page) });
  for (const wanted of SIZES) {
    await ingest(request, service(wanted), stacksOf(wanted));
    tell({
      who: "stakeout",
      what: "size",
      wanted,
      ...(await figuresOf(page, browser, baseURL, address(service(wanted)))),
    });
    await ingestRows(request, wanted);
    tell({
      who: "stakeout, rows",
      what: "size",
      wanted,
      ...(await figuresOf(page, browser, baseURL, rowsAddress(wanted))),
    });
  }
  await browser.close();
});

/** What is measured of one tree. */
async function figuresOf(page: Page, browser: Browser, baseURL: string | undefined, to: string) {
  const pictures: number[] = [];
  const blocks: number[] = [];
  let [nodes, server] = [0, 0];
  // The first one also fills the server's caches.
  for (let i = 0; i <= REPEAT; i++) {
    const picture = await firstPicture(page, to);
    ({ nodes, server } = picture);
    if (i === 0) continue;
    pictures.push(picture.ms);
    blocks.push(picture.blocked);
  }
  const figures: Record<string, unknown> = { first: spread(pictures), answered: server, blocked: spread(blocks) };
  figures.heap = await heap(page);
  const fast = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await fast.goto(`${baseURL}${to}`);
  await fast.waitForFunction(() => performance.getEntriesByName("stakeout:flamegraph").length > 0);
  for (const [name, [count, step]] of Object.entries(MOVES)) figures[name] = spread(await frames(fast, count, step));
  await fast.close();
  return { nodes, ...figures };
}

const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
};

async function served(folder: string): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent((request.url ?? "/").replace(/[?#].*/, "")));
    const file = join(folder, path);
    if (path.includes("..") || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response
      .writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" })
      .end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

interface Nested {
  name: string;
  value: number;
  children: Nested[];
}

/** The server's columns as the nested objects that d3-flame-graph takes. */
function nested({
  strings,
  nodes,
}: {
  strings: string[];
  nodes: Record<"parent" | "name" | "total", number[]>;
}): Nested {
  const all = nodes.name.map(
    (name, i): Nested => ({ name: strings[name] ?? "", value: nodes.total[i] ?? 0, children: [] }),
  );
  for (let i = 1; i < all.length; i++) all[nodes.parent[i] as number]?.children.push(all[i] as Nested);
  return all[0] as Nested;
}

const D3_PAGE = `<!doctype html><meta charset="utf-8">
<link rel="stylesheet" href="/node_modules/d3-flame-graph/dist/d3-flamegraph.css">
<div id="chart" style="height:600px;overflow:auto"></div><script src="/node_modules/d3/dist/d3.min.js"></script>
<script src="/node_modules/d3-flame-graph/dist/d3-flamegraph.umd.min.js"></script>`;

/** The little of both libraries that is used. */
interface D3 {
  d3: { select: (at: string) => { datum: (data: unknown) => { call: (chart: unknown) => void } } };
  flamegraph: (() => { width: (pixels: number) => unknown }) & { default?: D3["flamegraph"] };
}

/** Runs what may never end; undefined where it took too long or broke. */
async function patient<T>(work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), PATIENCE_MS);
  });
  return Promise.race([work.catch(() => undefined), late]).finally(() => clearTimeout(timer));
}

test("d3-flame-graph", async ({ playwright, request }) => {
  test.skip(PEERS === "", "no peers wanted");
  const browser = await unlimited(playwright.chromium);
  writeFileSync(join(PEERS, "d3.html"), D3_PAGE);
  const { url, server } = await served(PEERS);
  for (const wanted of SIZES) {
    const answer = await request.get(`/api/v1/flamegraph${address(service(wanted)).slice(1)}`, { timeout: 0 });
    writeFileSync(join(PEERS, "d3.json"), JSON.stringify(nested(await answer.json())));
    const page = await browser.newPage();
    await page.goto(`${url}/d3.html`);
    const first = await patient(
      page.evaluate(async () => {
        const { d3, flamegraph } = globalThis as unknown as D3;
        const begin = performance.now();
        const data = await (await fetch("/d3.json")).json();
        const chart = (flamegraph.default ?? flamegraph)().width(900);
        d3.select("#chart").datum(data).call(chart);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        Object.assign(globalThis, { chart });
        return performance.now() - begin;
      }),
    );
    const figures: Record<string, unknown> = { first: first === undefined ? null : spread([first]) };
    if (first !== undefined) {
      const zoom = `const all = d3.selectAll("#chart g.frame").nodes();
        all[(k * 37) % Math.min(all.length, 200)]?.dispatchEvent(new MouseEvent("click", { bubbles: true }));`;
      const moves: [string, number, string][] = [
        ["zoom", 10, zoom],
        ["pan", 30, `document.getElementById("chart").scrollTop += 9;`],
        ["search", 8, `chart.search("module_17::Type1".slice(0, k + 1));`],
      ];
      for (const [name, count, step] of moves) {
        const taken = await patient(frames(page, count, step));
        figures[name] = taken === undefined ? null : spread(taken);
        if (taken === undefined) break;
      }
      figures.heap = await patient(heap(page));
    }
    tell({ who: "d3-flame-graph", what: "size", wanted, ...figures });
    await patient(page.close());
  }
  await patient(browser.close());
  server.close();
});

test("speedscope", async ({ playwright, request }) => {
  test.skip(PEERS === "", "no peers wanted");
  // It draws by WebGL, here without a graphics card.
  const browser = await unlimited(playwright.chromium, ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]);
  const { url, server } = await served(PEERS);
  for (const wanted of SIZES) {
    const answer = await request.get(`/api/v1/flamegraph${address(service(wanted)).slice(1)}&format=speedscope`, {
      timeout: 0,
    });
    writeFileSync(join(PEERS, "speedscope.json"), await answer.body());
    const page = await browser.newPage();
    const begin = Date.now();
    const profile = encodeURIComponent(`${url}/speedscope.json`);
    const shown = await patient(
      page
        .goto(`${url}/node_modules/speedscope/dist/release/index.html#profileURL=${profile}`)
        .then(() =>
          page.waitForFunction(
            () => document.title.includes("bench") || document.querySelectorAll("canvas").length > 1,
            null,
            { timeout: PATIENCE_MS },
          ),
        )
        .then(() => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))))),
    );
    const isShown =
      shown !== undefined ||
      (await page
        .locator("canvas")
        .count()
        .catch(() => 0)) > 1;
    const figures: Record<string, unknown> = { first: isShown ? spread([Date.now() - begin]) : null };
    if (isShown) {
      const wheel = (more: string) =>
        `const all = document.querySelectorAll("canvas"); const canvas = all[all.length - 1];
         const { left, top, width, height } = canvas.getBoundingClientRect();
         const at = { bubbles: true, cancelable: true, clientX: left + width * 0.4, clientY: top + height / 2 };
         canvas.dispatchEvent(new WheelEvent("wheel", { ...at, ${more} }));`;
      const moves: [string, number, string][] = [
        ["zoom", 60, wheel("deltaY: k < 30 ? -50 : 50, ctrlKey: true")],
        ["pan", 80, wheel("deltaX: k % 2 ? 40 : 25, deltaY: k < 40 ? 9 : 0")],
      ];
      for (const [name, count, step] of moves) {
        const taken = await patient(frames(page, count, step));
        figures[name] = taken === undefined ? null : spread(taken);
      }
      figures.heap = await patient(heap(page));
    }
    tell({ who: "speedscope", what: "size", wanted, ...figures });
    await patient(page.close());
  }
  await patient(browser.close());
  server.close();
});
