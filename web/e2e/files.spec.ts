/** A view saved as a file: opened without a server, its sums are those of the page; names do no harm in it. */
import { readFileSync } from "node:fs";
import type { Browser, Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { fleet } from "./fleet.ts";
import { networkStalls, STALLS } from "./incidents.ts";
import { drawn, stored, TAKEN, WINDOW } from "./known.ts";
import { otlp } from "./otlp.ts";
import { at, colours, comparison, expect, held, test } from "./stack.ts";

const EVIL = '</script><script>document.title="owned"</script>"\'&\u202e';
const prog = (name: string) => ({ name, module: "/opt/bin/saved" });
/** 25 below `walk`, 10 below a name that means harm, 5 of main alone. */
const STACKS = [
  { frames: [prog("main"), prog("housekeeping"), prog("walk")], samples: 25 },
  { frames: [prog("main"), prog(EVIL)], samples: 10 },
  { frames: [prog("main")], samples: 5 },
];

async function save(page: Page, name: RegExp): Promise<string> {
  await page.getByRole("button", { name: /^Download/ }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator(".menu-list").getByRole("button", { name }).click(),
  ]);
  return download.path();
}

/** A saved file in a page of its own, from the disk; whatever it asks for, and whatever goes wrong, is told. */
async function opened(browser: Browser, path: string, kind: string) {
  const context = await browser.newContext({ offline: true });
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") wrong.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^(file|data):/.test(request.url())) wrong.push(request.url());
  });
  const { copyFileSync } = await import("node:fs");
  const named = `${path}.${kind}`;
  copyFileSync(path, named);
  await page.goto(`file://${named}`);
  return { page, wrong, close: () => context.close() };
}

test("HTML: one file that opens without a server, with the page's sums, zoom, search and facts", async ({
  page,
  request,
  browser,
}) => {
  const selected = await stored(request, "saved", STACKS);
  await page.goto(at(WINDOW, { ...selected, focus: "main;housekeeping", match: "walk", theme: "dark", tz: "utc" }));
  await drawn(page);
  const path = await save(page, /^HTML file/);
  expect(readFileSync(path, "utf8")).not.toContain("<script>document");
  const file = await opened(browser, path, "html");
  const said = file.page.locator("#said");
  const graph = file.page.locator("#graph");
  // As it was in sight: zoomed, searched, dark.
  await expect(said).toContainText(/^housekeeping \(saved\): 25 samples, 62\.50.%/);
  await expect(said).toContainText(/found: 25 samples, 62\.50.%/);
  await expect(file.page.locator("#find")).toHaveValue("walk");
  await expect(file.page.locator("html")).toHaveClass("dark");
  await file.page.getByRole("button", { name: "Show all" }).click();
  await expect(said).toContainText(/^all: 40 samples, 100\.00.%.*of CPU time/);
  await file.page.locator("#find").fill("/^(walk|main)$/");
  await expect(said).toContainText(/found: 40 samples/);
  // Keys and pointer: root, main, its widest callee.
  await graph.focus();
  await file.page.keyboard.press("ArrowDown");
  await expect(said).toContainText(/^main \(saved\): 40 samples.*self 5/);
  const box = (await graph.boundingBox()) ?? { x: 0, y: 0, width: 0 };
  await file.page.mouse.move(box.x + box.width - 4, box.y + 19 + 9);
  await expect(file.page.locator("#tip")).toContainText("main");
  await file.page.mouse.click(box.x + box.width / 2, box.y + 19 * 2 + 9);
  await expect(said).toContainText(/: (25|10) samples/);
  // What was asked.
  const facts = file.page.locator("dl");
  await expect(facts).toContainText(selected.query as string);
  await expect(facts).toContainText(new Date(WINDOW.from).toISOString());
  await expect(facts).toContainText(/40 samples, 2\.00.s of CPU time/);
  await expect(facts).toContainText("40 complete, 0 truncated");
  await expect(facts).toContainText("Zoomed tohousekeeping");
  await expect(facts).toContainText("UTC");
  // The table is the same as text; the name that means harm is a name.
  const row = (name: string) => file.page.locator("tbody tr").filter({ hasText: name });
  await expect(row("walk").locator("td")).toHaveText(["walk", "saved", "25", "25"]);
  await expect(row("owned").locator("td").first()).toHaveText(EVIL.replace("\u202e", "⟨U+202E⟩"));
  await expect(file.page.locator("script")).toHaveCount(2);
  expect(await file.page.title()).toContain("Stakeout");
  expect(await serious(file.page)).toEqual([]);
  await file.page.screenshot({ path: "test-results/file-html.png" });
  expect(file.wrong).toEqual([]);
  await file.close();
});

test("HTML of a comparison has both sides and what was judged", async ({ page, request, browser }) => {
  const service = `pair-${process.pid}-${TAKEN}`;
  for (const [begin, samples] of [
    [TAKEN - 20_000, 20],
    [TAKEN, 200],
  ] as const) {
    const body = otlp({
      service,
      at: begin,
      frames: [prog("main"), prog("walk")],
      stacks: [{ frames: [1, 0], samples }],
    });
    const answer = await request.post("/v1development/profiles", {
      headers: { "content-type": "application/x-protobuf" },
      data: Buffer.from(body),
    });
    expect(answer.status()).toBe(200);
  }
  const span = (begin: number) => ({ from: begin - 2_000, until: begin + 8_000 });
  const windows = { busy: "", before: span(TAKEN - 20_000), after: span(TAKEN) };
  await page.goto(comparison(windows, { query: `{service="${service}"}` }));
  await drawn(page);
  const file = await opened(browser, await save(page, /^HTML file/), "html");
  await expect(file.page.locator("#said")).toContainText("all: A 20, B 200 samples");
  const facts = file.page.locator("dl");
  await expect(facts).toContainText(/A: samples20 samples/);
  await expect(facts).toContainText(/B: samples200 samples/);
  await expect(facts).toContainText(/(\d of \d frames? changed|no significant change); 95\s%\sCI/);
  await expect(file.page.locator("img")).toHaveCount(1);
  expect(file.wrong).toEqual([]);
  await file.close();
});

test("SVG and PNG are what is in sight, light and dark", async ({ page, request, browser }) => {
  const selected = await stored(request, "drawn", STACKS);
  for (const theme of ["light", "dark"] as const) {
    await page.goto(at(WINDOW, { ...selected, focus: "main;housekeeping", match: "walk", theme }));
    await drawn(page);
    const path = await save(page, /^SVG of what is in sight/);
    const file = await opened(browser, path, "svg");
    const text = readFileSync(path, "utf8");
    expect(text).toContain(theme === "dark" ? "#131821" : "#ffffff");
    const titles = await file.page.locator("g > title").allTextContents();
    // The zoomed frame, its callers and its callee, with the sums of the page; the other side of main is out of sight.
    expect(titles.filter((one) => /^housekeeping.*25 samples/.test(one))).toHaveLength(1);
    expect(titles.filter((one) => /^walk.*25 samples/.test(one))).toHaveLength(1);
    expect(titles.filter((one) => one.includes("owned"))).toHaveLength(0);
    const boxOf = (name: RegExp) =>
      file.page
        .locator("g")
        .filter({ has: file.page.locator("title", { hasText: name }) })
        .locator("rect")
        .first();
    const [walk, whole] = [
      await boxOf(/^walk/).getAttribute("width"),
      await boxOf(/^housekeeping/).getAttribute("width"),
    ];
    expect(walk).toBe(whole);
    await expect(file.page.locator("rect.hit")).toHaveCount(1);
    expect(text).toContain(`service=&quot;`);
    expect(file.wrong).toEqual([]);
    await file.close();
    const png = readFileSync(await save(page, /^PNG of what is in sight/));
    expect(png.subarray(1, 4).toString()).toBe("PNG");
    const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
    const shown = (await page.getByTestId("flamegraph").boundingBox()) ?? { width: 0 };
    expect(Math.abs(width - 2 * shown.width)).toBeLessThan(20);
    expect(height).toBeGreaterThan(300);
    // Whole, the hostile name is in the SVG, as text.
    await page.goto(at(WINDOW, { ...selected, theme }));
    await drawn(page);
    const all = await opened(browser, await save(page, /^SVG of what is in sight/), "svg");
    await expect(all.page.locator("script")).toHaveCount(0);
    expect((await all.page.locator("g > title").allTextContents()).filter((one) => one.includes("owned"))).toHaveLength(
      1,
    );
    expect(all.wrong).toEqual([]);
    await all.close();
  }
});

test("views without a graph are saved with their charts as they are", async ({ page, request, browser }) => {
  const selected = await stored(request, "charts", STACKS);
  const release = await held(page, "**/api/v1/flamegraph*");
  await page.goto(at(WINDOW, { ...selected, view: "heatmap" }));
  await expect.poll(() => colours(page, "heatmap")).toBeGreaterThan(2);
  await page.getByRole("button", { name: /^Share/ }).click();
  const downloaded = page.waitForEvent("download");
  await page.getByRole("button", { name: /Save as an HTML file/ }).click();
  // The graph below comes by an answer of its own, which is waited for.
  await expect(page.getByText("Saved as soon as the graph is there.")).toBeVisible();
  release();
  const download = await downloaded;
  const file = await opened(browser, await download.path(), "html");
  await expect(file.page.getByRole("img", { name: "Heatmap" })).toBeVisible();
  await expect(file.page.locator("#said")).toContainText("all: 40 samples");
  expect(file.wrong).toEqual([]);
  await file.close();
});

test("preceding samples are saved as graphs are, with the timeline above them", async ({ page, request, browser }) => {
  const { node, range } = await networkStalls(request, "files");
  const lane = `{node="${node}",service="ksoftirqd",cpu="11"}`;
  await page.goto(at(range, { view: "timeline", query: lane, hit: "net_rx_action", before: "100" }));
  await drawn(page);
  const samples = STALLS.times * STALLS.before;
  const file = await opened(browser, await save(page, /^HTML file/), "html");
  await expect(file.page.getByRole("img", { name: "Sample timeline" })).toBeVisible();
  await expect(file.page.locator("#said")).toContainText(`all: ${samples} samples`);
  const facts = file.page.locator("dl");
  await expect(facts).toContainText(/on the same CPU, up to 100\sms before samples with net_rx_action/);
  await expect(facts).toContainText(node);
  // All of them are cadvisor's, which read a file of the kernel.
  await expect(file.page.locator("tbody tr").filter({ hasText: "memcg_stat_show" })).toContainText(String(samples));
  expect(file.wrong).toEqual([]);
  await file.close();
  const svg = await opened(browser, await save(page, /^SVG of what is in sight/), "svg");
  const titles = await svg.page.locator("g > title").allTextContents();
  expect(titles.filter((one) => new RegExp(`^memcg_stat_show.*\\b${samples} samples`).test(one))).toHaveLength(1);
  expect(svg.wrong).toEqual([]);
  await svg.close();
  const png = readFileSync(await save(page, /^PNG of what is in sight/));
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  // The server has them as JSON alone.
  await page.getByRole("button", { name: /^Download/ }).click();
  const link = page.locator(".menu-list").getByRole("link");
  await expect(link).toHaveCount(1);
  const answer = await request.get((await link.getAttribute("href")) ?? "");
  expect(((await answer.json()) as { samples: number }).samples).toBe(samples);
});

test("threads' time is saved with its table: what the threads of each row did", async ({ page, request, browser }) => {
  const selected = await stored(request, "threads-saved", STACKS);
  await page.goto(at(WINDOW, { ...selected, view: "threads", by: "service" }));
  await expect(page.locator(".thread-bar")).toHaveCount(1);
  await page.getByRole("button", { name: /^Share/ }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: /Save as an HTML file/ }).click(),
  ]);
  const file = await opened(browser, await download.path(), "html");
  await expect(file.page.getByRole("img", { name: "The chart over time" })).toBeVisible();
  await expect(file.page.getByRole("heading", { name: "Threads' time by service: 1 of 1 value" })).toBeVisible();
  await expect(file.page.locator("thead th")).toHaveText(["service", "Threads", "Running"]);
  // Forty samples of a twentieth of a second each, in a window of twenty.
  const cells = file.page.locator("tbody tr").filter({ hasText: "threads-saved" }).locator("td");
  await expect(cells).toHaveText([/^threads-saved/, /^0\.100$/, /^0\.100 \(100\s%\)$/]);
  expect(await serious(file.page)).toEqual([]);
  expect(file.wrong).toEqual([]);
  await file.close();
});

test("agents are saved as they are listed, with all that is known of them", async ({ page, browser }) => {
  await page.route("**/api/v1/nodes", (route) => route.fulfill({ json: { nodes: fleet(30) } }));
  await page.goto("/?view=nodes&trouble=lost&theme=dark");
  // Every tenth of them lost samples.
  await expect(page.getByRole("grid", { name: "Table of agents" }).locator(".vtable-row")).toHaveCount(3);
  await page.getByRole("button", { name: /^Share/ }).click();
  const menu = page.locator(".menu-list");
  await expect(menu.getByRole("button", { name: /^Save as an HTML file/ })).toBeVisible();
  await expect(menu.getByRole("button", { name: /^Save as PNG/ })).toHaveCount(0);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    menu.getByRole("button", { name: /^Save as an HTML file/ }).click(),
  ]);
  const file = await opened(browser, await download.path(), "html");
  await expect(file.page.getByRole("heading", { name: "3 of 30 agents" })).toBeVisible();
  const rows = file.page.locator("tbody tr");
  await expect(rows).toHaveCount(3);
  await expect(rows.filter({ hasText: "rack0-node-13" })).toContainText(/1\s013 taken = 1\s008 stored \+ 5 lost/);
  await expect(rows.filter({ hasText: "rack0-node-13" })).toContainText("ring_full: 5");
  await expect(file.page.locator("html")).toHaveClass("dark");
  await expect(file.page.locator("script")).toHaveCount(0);
  expect(await serious(file.page)).toEqual([]);
  expect(file.wrong).toEqual([]);
  await file.close();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});
