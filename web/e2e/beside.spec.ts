/** Both sides of a comparison as graphs beside each other: one zoom, one selection, one search, one scale. */
import type { APIRequestContext, Locator, Page } from "@playwright/test";
import { drawn, stored, TAKEN, WINDOW } from "./known.ts";
import type { Frame } from "./otlp.ts";
import { at, expect, parameter, placeOf, pointAt, test } from "./stack.ts";

/** CSS pixels. */
const ROW = 19;
const prog = (name: string): Frame => ({ name, module: "/opt/bin/prog" });
const [MAIN, WALK, READ] = [prog("main"), prog("walk"), prog("read")];
const selectorOf = (part: string) => `{service="${part}-${process.pid}-${TAKEN}"}`;
const PAIR = {
  view: "compare",
  graphs: "beside",
  query: selectorOf("beside-b"),
  baseQuery: selectorOf("beside-a"),
  baseFrom: String(WINDOW.from),
  baseUntil: String(WINDOW.until),
};

let made: Promise<unknown> | null = null;

/** A has 60 samples, 50 of them in `walk`; B has 40, all of them there. */
function sides(request: APIRequestContext): Promise<unknown> {
  made ??= Promise.all([
    stored(request, "beside-a", [
      { frames: [MAIN, READ], samples: 10 },
      { frames: [MAIN, WALK], samples: 50 },
    ]),
    stored(request, "beside-b", [{ frames: [MAIN, WALK], samples: 40 }]),
  ]);
  return made;
}

async function both(page: Page): Promise<{ a: Locator; b: Locator }> {
  const of = (letter: string) => page.getByTestId(`beside-${letter}`).getByTestId("flamegraph");
  await expect(of("A")).toBeVisible();
  await page.waitForLoadState("networkidle");
  return { a: of("A"), b: of("B") };
}

/** How much wider B is drawn than A. */
async function ratio({ a, b }: { a: Locator; b: Locator }): Promise<number> {
  return (await placeOf(b)).width / (await placeOf(a)).width;
}

test.beforeEach(async ({ request }) => {
  await sides(request);
});

test("widths are cores on both sides, and one zoom moves both", async ({ page }) => {
  await page.goto(at(WINDOW, PAIR));
  const graphs = await both(page);
  await expect(page.getByTestId("beside-A")).toContainText("0.150 cores");
  await expect(page.getByTestId("beside-B")).toContainText("0.100 cores");
  expect(await ratio(graphs)).toBeCloseTo(40 / 60, 1);
  await expect(page.getByTestId("beside-note")).toHaveText(
    "Equal widths are equal cores on both sides: B is 66.7 % as wide",
  );
  const { width } = await placeOf(graphs.b);
  await graphs.b.click({ position: { x: width / 2, y: 2 * ROW + 9 } });
  await expect.poll(() => parameter(page, "focus")).toBe("main;walk");
  await expect(page.getByTestId("beside-A")).toContainText("walk: 0.125 cores");
  await expect.poll(() => ratio(graphs)).toBeCloseTo(40 / 50, 1);
  await expect(page.getByTestId("selected-frame")).toContainText("walk: ");
  // By keys of either side: the selection is one.
  await graphs.a.press("ArrowUp");
  await expect.poll(() => parameter(page, "frame")).toBe("main");
  await graphs.b.press("Escape");
  await expect(page.getByTestId("reset-zoom")).toHaveCount(0);
});

test("what one side lacks is said there, and a search is in both", async ({ page }) => {
  await page.goto(at(WINDOW, { ...PAIR, match: "walk", colour: "module" }));
  const { a, b } = await both(page);
  // Two selections are no course of one: no arrow.
  await expect(page.getByTestId("found")).toContainText("A 83.3 %, B 100 %");
  await expect(page.getByTestId("found")).toContainText("A 0.125, B 0.100 cores, A 50, B 40 samples in 1 frame");
  await expect(page.locator(".graph")).not.toContainText("→");
  const tip = await pointAt(a, { x: (await placeOf(a)).width - 9, y: 2 * ROW + 9 }, "walk");
  await expect(tip).toContainText("50");
  await expect(tip).toContainText("40");
  await pointAt(b, { x: 9, y: 2 * ROW + 9 }, "walk");
  await pointAt(a, { x: 9, y: 2 * ROW + 9 }, "read");
  await a.click({ position: { x: 9, y: 2 * ROW + 9 } });
  await expect(page.getByTestId("beside-B")).toContainText("No samples of it in B.");
  await page.getByTestId("reset-zoom").click();
  await expect(b).toBeVisible();
});

test("the choice stands in the address and leads back to one graph", async ({ page }) => {
  const { graphs: _, ...union } = PAIR;
  await page.goto(at(WINDOW, union));
  await drawn(page);
  await page.getByRole("group", { name: "Graphs" }).getByRole("button", { name: "A | B" }).click();
  await expect.poll(() => parameter(page, "graphs")).toBe("beside");
  await both(page);
  await page.goBack();
  await expect(page.getByTestId("flamegraph")).toHaveCount(1);
});

test("on a phone they stand above each other, at one scale", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(at(WINDOW, PAIR));
  const graphs = await both(page);
  const [a, b] = [await placeOf(graphs.a), await placeOf(graphs.b)];
  expect(b.y).toBeGreaterThan(a.y + a.height);
  expect(b.x).toBe(a.x);
  expect(await ratio(graphs)).toBeCloseTo(40 / 60, 1);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});
