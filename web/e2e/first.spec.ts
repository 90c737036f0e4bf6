/** The first screen: frames begin near its top, nothing that is selected moves them, and what is folded is near. */
import type { Page } from "@playwright/test";
import { turn } from "./axe.ts";
import { tabTo } from "./hand.ts";
import { course, drawn, stored, WINDOW } from "./known.ts";
import type { Frame } from "./otlp.ts";
import { at, colours, comparison, expect, held, parameter, placeOf, test } from "./stack.ts";
import { warn } from "./warned.ts";

const LOWEST = 350;
const LEAST_ROWS = 27;
/** Behind a click on a frame, on a screen of a desk. */
const LEAST_CLICKED = 20;
const ROW = 19;
const SIZES = [
  { width: 1440, height: 900, rows: LEAST_ROWS },
  { width: 390, height: 844, rows: LEAST_ROWS },
  { width: 1280, height: 720, rows: 15 },
  { width: 768, height: 1024, rows: LEAST_ROWS },
];

const prog = (name: string): Frame => ({ name, module: "/opt/bin/prog" });
const DEEP = Array.from({ length: 60 }, (_, i) => prog(`level${i}`));

/** Where the first row of frames begins, and how many rows are in sight. */
async function rowsOf(page: Page): Promise<{ top: number; rows: number }> {
  const box = await placeOf(page.locator(".flame-scroll"));
  const height = page.viewportSize()?.height ?? 0;
  return { top: box.y, rows: (Math.min(box.y + box.height, height) - box.y) / ROW };
}

/** Of seconds that an agent covered: one window, and its two sides. */
function addressesOf(from: number, more: Record<string, string>): string[] {
  const sides = { before: { from, until: from + 8_000 }, after: { from: from + 8_000, until: from + 16_000 } };
  return [at({ from, until: from + 16_000 }, more), comparison({ busy: "", ...sides }, more)];
}

for (const { width, height, rows: least } of SIZES)
  test(`frames begin near the top of ${width} by ${height} in both themes, with warnings and with none`, async ({
    page,
    windows,
    request,
  }) => {
    const { from } = windows.before;
    const seconds = Array.from({ length: 16 }, () => ({ frames: DEEP, samples: 20 }));
    const deep = await course(request, `deep-${width}`, from, seconds);
    await page.setViewportSize({ width, height });
    for (const isWarned of [false, true]) {
      if (isWarned) await warn(page);
      for (const address of addressesOf(from, deep)) {
        await page.goto(address);
        await expect.poll(() => colours(page)).toBeGreaterThan(1);
        await expect(page.getByTestId("fold-data")).toHaveAccessibleName(
          isWarned
            ? /^Data: check \(3\) .*(coverage gap of .*coverage gaps in|No agent covered .*covered) .*lost/
            : /^Data: good/,
        );
        const { top, rows } = await rowsOf(page);
        expect(top, address).toBeLessThanOrEqual(LOWEST);
        expect(rows, address).toBeGreaterThanOrEqual(least);
        // The other theme has other colours, and the same places.
        const theme = await turn(page);
        expect(await rowsOf(page), `${address} in ${theme}`).toEqual({ top, rows });
        if (width !== 1440) continue;
        await page.getByTestId("flamegraph").click({ position: { x: 300, y: ROW * 4 + 9 } });
        await expect(page.getByTestId("frame-panel")).toBeVisible();
        const clicked = await rowsOf(page);
        expect(clicked.top, address).toBe(top);
        expect(clicked.rows, address).toBeGreaterThanOrEqual(LEAST_CLICKED);
        const other = await turn(page);
        expect(await rowsOf(page), `${address} in ${other}, a frame clicked`).toEqual(clicked);
      }
    }
    // Answers that are still on their way when the test ends are nobody's.
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

test("frames stay where they are when the chart comes late", async ({ page, windows, request }) => {
  const { from } = windows.before;
  const seconds = Array.from({ length: 16 }, () => ({ frames: DEEP, samples: 20 }));
  const deep = await course(request, "late", from, seconds);
  for (const { width, height } of SIZES) {
    await page.setViewportSize({ width, height });
    for (const address of addressesOf(from, deep)) {
      const release = await held(page, /api\/v1\/(series|facets)/);
      await page.goto(address);
      await expect.poll(() => colours(page)).toBeGreaterThan(1);
      await expect(page.locator(".waiting.chart")).toBeVisible();
      await expect(page.getByTestId("cancel")).toBeVisible();
      const { top } = await rowsOf(page);
      release();
      await expect(page.locator(".waiting.chart")).toHaveCount(0);
      await page.waitForLoadState("networkidle");
      expect((await rowsOf(page)).top, `${address} at ${width}`).toBe(top);
      await page.unrouteAll({ behavior: "ignoreErrors" });
    }
  }
});

test("a click on a frame moves no frame, and leaves rows; a menu does not cover it", async ({ page, request }) => {
  const query = await stored(request, "still", [
    { frames: DEEP, samples: 60 },
    { frames: [...DEEP.slice(0, 40), prog("beside")], samples: 40 },
  ]);
  for (const address of [
    at(WINDOW, query),
    at(WINDOW, { ...query, view: "compare", baseFrom: String(WINDOW.from - 60_000), baseUntil: String(WINDOW.from) }),
  ]) {
    await page.goto(address);
    await drawn(page);
    const graph = page.getByTestId("flamegraph");
    // Scrolled, so that a frame has somewhere to go.
    await page.locator(".flame-scroll").evaluate((box) => box.scrollTo(0, 190));
    const before = await placeOf(graph);
    const scrolled = () => page.locator(".flame-scroll").evaluate((box) => box.scrollTop);
    const was = await scrolled();
    const place = { x: before.width * 0.3, y: ROW * 4 + 9 };
    await graph.click({ position: place, button: "right" });
    const menu = await placeOf(page.getByRole("menu"));
    const row = { top: before.y + ROW * 4 - (was % ROW), bottom: before.y + ROW * 5 - (was % ROW) };
    expect(menu.y >= row.bottom - 1 || menu.y + menu.height <= row.top + ROW).toBe(true);
    await page.keyboard.press("Escape");
    await graph.click({ position: place });
    await expect(page.getByTestId("frame-panel")).toBeVisible();
    await expect(page.getByTestId("reset-zoom")).toBeVisible();
    await page.waitForLoadState("networkidle");
    expect(await placeOf(graph)).toEqual(before);
    expect(await scrolled()).toBe(was);
    expect((await rowsOf(page)).rows).toBeGreaterThanOrEqual(LEAST_CLICKED);
    // Nor does it where nothing is selected any more.
    await graph.press("Escape");
    await expect(page.getByTestId("frame-panel")).toHaveCount(0);
    expect(await placeOf(graph)).toEqual(before);
  }
});

for (const width of [1440, 1280])
  test(`what a search finds moves no frame at ${width}`, async ({ page, request }) => {
    await page.setViewportSize({ width, height: 900 });
    const { query = "" } = await stored(request, "found", [
      { frames: DEEP, samples: 30 },
      { frames: [prog("level0"), { name: "level1", module: "/usr/lib/libother.so" }], samples: 10 },
    ]);
    await page.goto(at(WINDOW, { query, group: "service" }));
    await drawn(page);
    const before = await rowsOf(page);
    await page.getByTestId("search").fill("/^level1$/");
    const found = page.getByTestId("found");
    // All of it can be read where there is no room for it.
    await expect(found.locator(".found-text")).toHaveAttribute(
      "title",
      /^100\s% · .*\sin\s\d+\sframes so named, of any module/,
    );
    await expect(found.getByRole("button", { name: "Next match" })).toBeInViewport({ ratio: 1 });
    expect(await rowsOf(page)).toEqual(before);
  });

test("the first screen takes few questions, and lists of several labels one more", async ({ page, windows }) => {
  const asked: string[] = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith("/api/")) asked.push(pathname.replace("/api/v1/", ""));
  });
  await page.goto(at(windows.after));
  await drawn(page);
  expect(asked.length, asked.join(", ")).toBeLessThanOrEqual(6);
  for (const [tab, testId] of [
    ["Top lists", "toplists"],
    ["Spent by", "spent"],
  ] as const) {
    asked.length = 0;
    await page.getByRole("tab", { name: tab }).click();
    await expect(page.getByTestId(testId)).toContainText("service");
    await page.waitForLoadState("networkidle");
    expect(asked.filter((path) => /^(series|top|facets)$/.test(path))).toEqual(["facets"]);
  }
  // One word among all labels is one question, whatever labels there are.
  asked.length = 0;
  await page.getByTestId("query").fill(windows.busy);
  await expect(page.getByRole("option", { name: new RegExp(`process=.*${windows.busy}`) }).first()).toBeVisible();
  await page.waitForLoadState("networkidle");
  expect(asked.filter((path) => path.startsWith("labels/"))).toEqual([]);
  expect(asked).toContain("search");
});

for (const { width, height } of SIZES.slice(0, 2))
  test(`frames are within five presses of Tab and Enter at ${width}, and arrows then go through them`, async ({
    page,
    windows,
  }) => {
    await page.setViewportSize({ width, height });
    for (const address of [at(windows.after), comparison(windows)]) {
      await page.goto(address);
      await expect.poll(() => colours(page)).toBeGreaterThan(1);
      const skip = page.getByRole("button", { name: "Skip to the frames" });
      const stops = await tabTo(page, skip);
      await expect(skip).toBeInViewport();
      await page.keyboard.press("Enter");
      await expect(page.getByTestId("flamegraph")).toBeFocused();
      expect(stops + 1).toBeLessThanOrEqual(5);
      await page.keyboard.press("ArrowDown");
      await expect.poll(() => parameter(page, "frame")).not.toBeNull();
    }
  });

test("the table marks what is selected in the graph, and scrolls to it on request only", async ({ page, request }) => {
  const names = Array.from({ length: 80 }, (_, i) => `f${String(i).padStart(2, "0")}`);
  const query = await stored(
    request,
    "marks",
    names.map((name, i) => ({ frames: [prog("main"), prog(name)], samples: 200 - i })),
  );
  await page.goto(at(WINDOW, { ...query, tab: "functions", frame: "main;f79" }));
  await drawn(page);
  const table = page.getByRole("grid", { name: "Functions" });
  await expect(page.getByTestId("to-chosen")).toBeVisible();
  expect(await table.evaluate((box) => box.scrollTop)).toBe(0);
  await page.getByTestId("to-chosen").click();
  await expect(table.locator(".vtable-row.chosen bdi")).toHaveText("f79");
  await expect(page.getByTestId("to-chosen")).toHaveCount(0);
});

test("what is folded is one click away and stands in the address; Back folds it", async ({ page, windows }) => {
  await page.goto(comparison(windows));
  await expect(page.getByTestId("verdict")).toBeVisible();
  for (const [fold, there] of [
    ["sides", page.getByTestId("confidence")],
    ["data", page.locator(".quality").first()],
    ["key", page.getByRole("list", { name: "Colours" })],
  ] as const) {
    await expect(there).toHaveCount(0);
    await page.getByTestId(`fold-${fold}`).click();
    await expect(there).toBeVisible();
    await page.reload();
    await expect(there).toBeVisible();
    await expect.poll(() => parameter(page, "more")).toContain(fold);
  }
  await page.goBack();
  await expect.poll(() => parameter(page, "more")).toBe("data,sides");
});
