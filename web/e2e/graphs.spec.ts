/** Two flamegraphs on one page: each is driven by its properties alone, and knows nothing of the other. */
import { fileURLToPath } from "node:url";
import type { Locator, Page } from "@playwright/test";
import { build } from "vite";
import { expect, test } from "./stack.ts";
import type { Asked } from "./twoGraphs.tsx";

const ENTRY = fileURLToPath(new URL("twoGraphs.tsx", import.meta.url));
/** CSS pixels of a row. */
const ROW = 19;

let made: Promise<string> | null = null;

/** A page with both graphs, put together from the sources as the server's page is. */
async function both(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: "error",
    build: { write: false, minify: false, lib: { entry: ENTRY, formats: ["iife"], name: "graphs" } },
  });
  const [result] = [built].flat();
  if (result === undefined || !("output" in result)) throw new Error("vite put nothing together");
  const code = result.output.map((one) => (one.type === "chunk" ? one.code : "")).join("");
  const style = result.output.map((one) => (one.type === "asset" ? String(one.source) : "")).join("");
  const script = code.replaceAll("</script", "<\\/script");
  return `<!doctype html><title>Two</title><style>${style}</style><body><script type="module">${script}</script>`;
}

async function opened(page: Page): Promise<{ left: Locator; right: Locator }> {
  made ??= both();
  const body = await made;
  await page.route("**/two-graphs", (route) => route.fulfill({ contentType: "text/html; charset=utf-8", body }));
  await page.goto("/two-graphs");
  const [left, right] = [page.getByTestId("left"), page.getByTestId("right")];
  // Frames of the second row are drawn.
  await expect.poll(() => brightness(left, [[2, ROW * 1.5]])).not.toEqual([0]);
  for (const side of [left, right]) await expect(side.getByTestId("minimap")).toBeVisible();
  return { left, right };
}

const graph = (side: Locator) => side.getByTestId("flamegraph");
const status = (side: Locator) => side.getByTestId("selected-frame");
const asked = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as { asked: Record<"left" | "right", Asked> }).asked);

/** What a graph shows, pixel by pixel. */
function picture(side: Locator): Promise<string> {
  return graph(side).evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());
}

/** Red, green and blue together of each place, CSS pixels. */
function brightness(side: Locator, places: [x: number, y: number][]): Promise<number[]> {
  return graph(side).evaluate((element, wanted) => {
    const canvas = element as HTMLCanvasElement;
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {
      willReadFrequently: true,
    });
    if (copy === null) return [];
    copy.drawImage(canvas, 0, 0);
    const ratio = canvas.width / canvas.clientWidth;
    return wanted.map(([x, y]) => {
      const [r = 0, g = 0, b = 0] = copy.getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1).data;
      return r + g + b;
    });
  }, places);
}

/** How high the rows of a graph stand, CSS pixels: a flame's first row is the lowest. */
async function middleOf(side: Locator, row: number): Promise<number> {
  const height = await graph(side).evaluate((canvas) => canvas.clientHeight);
  return (Math.floor(height / ROW) - row - 0.5) * ROW;
}

test("each has its own theme and stands on its own side", async ({ page }) => {
  const { left, right } = await opened(page);
  // Left of their names; the root of the left one is on top, of the right one at the bottom.
  const [root, empty] = await brightness(left, [
    [2, ROW / 2],
    [2, await middleOf(left, 0)],
  ]);
  expect(empty).toBe(3 * 255);
  expect(root).toBeLessThan(3 * 255);
  const [above, below] = await brightness(right, [
    [2, ROW / 2],
    [2, await middleOf(right, 0)],
  ]);
  expect(above).toBeLessThan(120);
  expect(below).toBeGreaterThan(above as number);
});

test("a click zooms the one that it falls on", async ({ page }) => {
  const { left, right } = await opened(page);
  const before = { left: await picture(left), right: await picture(right) };
  await graph(left).click({ position: { x: 20, y: ROW * 1.5 } });
  await expect(status(left)).toContainText("serve");
  await expect.poll(async () => (await asked(page)).left.zoomed).toEqual(["serve"]);
  await expect.poll(() => picture(left)).not.toBe(before.left);
  expect(await picture(right)).toBe(before.right);
  await expect(status(right)).toContainText("Click a frame");
  expect((await asked(page)).right).toMatchObject({ zoomed: [], selected: [] });
});

test("keys go to the one that has the focus, its menu has its frames", async ({ page }) => {
  const { left, right } = await opened(page);
  await graph(right).focus();
  // The root stands at the bottom: callees are above it.
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await expect(status(right)).toContainText("walk");
  await expect(status(left)).toContainText("Click a frame");
  await page.keyboard.press("Shift+F10");
  const menu = page.getByRole("menu");
  await expect(menu).toHaveCount(1);
  await menu.getByRole("menuitem", { name: /^Hide/ }).click();
  await expect(menu).toHaveCount(0);
  await expect(graph(right)).toBeFocused();
  const { left: ofLeft, right: ofRight } = await asked(page);
  expect(ofRight.acted).toEqual(["hide walk"]);
  expect(ofRight.selected.at(-1)).toBe("walk");
  expect(ofLeft).toEqual({ zoomed: [], selected: [], pointed: [], acted: [] });
});

test("a pointer is on one of them, and its figures are of that one", async ({ page }) => {
  const { left, right } = await opened(page);
  const tooltip = page.getByTestId("tooltip");
  await graph(left).hover({ position: { x: 20, y: ROW * 2.5 } });
  await expect(tooltip).toHaveCount(1);
  await expect(tooltip).toContainText("parse");
  await graph(right).hover({ position: { x: 20, y: 5 } });
  await expect(tooltip).toHaveCount(0);
  await graph(right).hover({ position: { x: 20, y: await middleOf(right, 1) } });
  await expect(tooltip).toHaveCount(1);
  await expect(tooltip).toContainText(/idle|walk/);
  expect((await asked(page)).left.pointed).toEqual(["parse", null]);
});
