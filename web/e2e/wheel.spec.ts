/** The wheel alone scrolls the page, wherever the pointer is, and leaves the address alone; with Ctrl it zooms. */
import type { Page } from "@playwright/test";
import { drawn, graphs, stored, WINDOW } from "./known.ts";
import {
  askAnew,
  at,
  colours,
  comparison,
  expect,
  parameter,
  placeOf,
  type Resting,
  rested,
  restless,
  settled,
  test,
} from "./stack.ts";

/** A high window scrolls below the bar, a low one as a whole. */
const scrolled = (page: Page) =>
  page.evaluate(() => (document.scrollingElement?.scrollTop ?? 0) + (document.querySelector("main")?.scrollTop ?? 0));

/** Something to scroll to on every screen: what is below the graph. */
async function lengthen(page: Page): Promise<void> {
  await page.evaluate(() => {
    const below = document.createElement("div");
    below.style.cssText = "flex: none; height: 900px";
    document.querySelector("main")?.append(below);
  });
}

for (const [view, what] of [
  ["explore", "brush"],
  ["explore", "flamegraph"],
  ["compare", "timechart"],
  ["compare", "flamegraph"],
] as const) {
  test(`three notches over the ${what} of ${view} scroll the page and change nothing`, async ({ page, windows }) => {
    await page.goto(view === "compare" ? comparison(windows) : at(windows.after));
    await expect.poll(() => colours(page)).toBeGreaterThan(2);
    await lengthen(page);
    const box = await placeOf(page.getByTestId(what));
    const address = page.url();
    await page.mouse.move(box.x + box.width / 3, box.y + Math.min(box.height / 2, 40));
    for (let i = 0; i < 3; i++) await page.mouse.wheel(0, 100);
    await expect.poll(() => scrolled(page)).toBe(300);
    // Longer than the page waits before it writes what a wheel has changed.
    expect(await settled(700, async () => page.url())).toBe(address);
    await page.mouse.wheel(0, -1000);
    await expect.poll(() => scrolled(page)).toBe(0);
    expect(page.url()).toBe(address);
  });
}

test("over a graph that has more rows than room, the page goes first and the rows follow", async ({
  page,
  windows,
}) => {
  await page.setViewportSize({ width: 1280, height: 420 });
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await lengthen(page);
  const inner = page.locator(".flame-scroll");
  await page.getByTestId("flamegraph").hover({ position: { x: 200, y: 30 } });
  const begin = await scrolled(page);
  await page.mouse.wheel(0, 60);
  await expect.poll(() => scrolled(page)).toBe(begin + 60);
  expect(await inner.evaluate((box) => box.scrollTop)).toBe(0);
});

test("says once, and never again in this browser, that Ctrl zooms", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  const hint = page.getByTestId("wheel-hint");
  const box = await placeOf(page.getByTestId("brush"));
  const centre = [box.x + box.width / 2, box.y + box.height / 2] as const;
  await page.mouse.move(...centre);
  await page.mouse.wheel(0, 10);
  await expect(hint).toContainText(/(Ctrl|⌘) to zoom the time/);
  await expect(hint).toHaveCount(0);
  await page.mouse.wheel(0, -10);
  await page.reload();
  await placeOf(page.getByTestId("brush"));
  await page.mouse.move(...centre);
  await page.mouse.wheel(0, 10);
  await page.waitForTimeout(300);
  await expect(hint).toHaveCount(0);
});

test("with Ctrl the wheel zooms the chart and the graph, and the page stays where it is", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await lengthen(page);
  await page.getByTestId("flamegraph").hover({ position: { x: 200, y: 30 } });
  const begin = await scrolled(page);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await expect.poll(() => rested(page, "part")).toMatch(/^[\d.]+-[\d.]+$/);
  expect(await scrolled(page)).toBe(begin);
  await page.getByTestId("brush").hover({ position: { x: 100, y: 40 } });
  const from = parameter(page, "from");
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await expect.poll(() => parameter(page, "from")).not.toBe(from);
});

test("Back before the hand rests takes back the zoom alone, of the chart and of the graph", async ({
  page,
  windows,
}) => {
  const hands = await restless(page);
  await page.goto(at(windows.after));
  await drawn(page);
  await page.getByRole("button", { name: "Icicle", exact: true }).click();
  await expect.poll(() => parameter(page, "layout")).toBe("flame");
  const { from, until } = { from: parameter(page, "from"), until: parameter(page, "until") };
  for (const what of ["brush", "flamegraph"]) {
    const begins = () => page.getByTestId("brush").getAttribute("aria-valuemin");
    const begin = await begins();
    await page.getByTestId(what).hover({ position: { x: 200, y: 30 } });
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -200);
    await page.keyboard.up("Control");
    await expect.poll(hands.begun).toBe(1);
    if (what === "brush") await expect.poll(begins).not.toBe(begin);
    await page.evaluate(() => {
      const left = new Promise((back) => addEventListener("popstate", back, { once: true }));
      history.back();
      return left.then(() => {});
    });
    await hands.rest();
    await expect.poll(begins).toBe(begin);
    await expect.poll(() => parameter(page, "layout")).toBe("flame");
    expect(await hands.begun()).toBe(0);
    for (const [name, value] of Object.entries({ from, until, part: null })) expect(parameter(page, name)).toBe(value);
  }
});

/** The wheel over the graph, of a hand that does not rest yet. */
async function zoomGraph(page: Page, hands: Resting): Promise<void> {
  await page.getByTestId("flamegraph").hover({ position: { x: 200, y: 30 } });
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await expect.poll(hands.begun).toBe(1);
}

test("what a hand has begun is taken before the address changes in another way", async ({ page, windows }) => {
  const hands = await restless(page);
  await page.goto(at(windows.after));
  await drawn(page);
  await zoomGraph(page, hands);
  await page.getByRole("button", { name: "Icicle", exact: true }).click();
  await expect.poll(() => parameter(page, "layout")).toBe("flame");
  expect(parameter(page, "part")).toMatch(/^[\d.]+-[\d.]+$/);
  expect(await hands.begun()).toBe(0);
});

test("an answer in the middle of a gesture on the graph does not undo it", async ({ page, request }) => {
  const prog = (name: string) => ({ name, module: "prog" });
  const stacks = [
    { frames: [prog("main"), prog("walk")], samples: 30 },
    { frames: [prog("main"), prog("read")], samples: 10 },
  ];
  const query = await stored(request, "wheel-live", stacks);
  const hands = await restless(page);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  await zoomGraph(page, hands);
  const before = await graphs(page);
  await askAnew(page);
  await expect.poll(() => graphs(page)).toBeGreaterThan(before);
  await hands.rest();
  await expect.poll(() => parameter(page, "part")).toMatch(/^[\d.]+-[\d.]+$/);
});
