/** Rows of labels above the stacks: whose the samples are, in known samples of two services. */
import type { APIRequestContext, Locator, Page } from "@playwright/test";
import { drawn, stored, TAKEN, WINDOW } from "./known.ts";
import type { Frame } from "./otlp.ts";
import { at, expect, parameter, pixels, pointAt, test } from "./stack.ts";

/** CSS pixels. */
const ROW = 19;
const prog = (name: string): Frame => ({ name, module: "/opt/bin/prog" });
const [MAIN, WALK, READ] = [prog("main"), prog("walk"), prog("read")];
const nameOf = (part: string) => `${part}-${process.pid}-${TAKEN}`;
const API = nameOf("rows-api");
const WEB = nameOf("rows-web");
const BOTH = { query: `{service=~"${API}|${WEB}"}` };

let made: Promise<unknown> | null = null;

/** 60 samples of one service and 40 of the other, of the same program. */
function services(request: APIRequestContext): Promise<unknown> {
  made ??= Promise.all([
    stored(request, "rows-api", [
      { frames: [MAIN, WALK], samples: 50 },
      { frames: [MAIN, READ], samples: 10 },
    ]),
    stored(request, "rows-web", [{ frames: [MAIN, WALK], samples: 40 }]),
  ]);
  return made;
}

/** Points at a row, at a part of the width. */
async function point(page: Page, row: number, part: number, text: string | RegExp): Promise<Locator> {
  const { width } = await drawn(page);
  return pointAt(page.getByTestId("flamegraph"), { x: width * part, y: row * ROW + 9 }, text);
}

async function openMenu(page: Page, row: number, part: number): Promise<Locator> {
  const { width } = await drawn(page);
  await page.getByTestId("flamegraph").click({ button: "right", position: { x: width * part, y: row * ROW + 9 } });
  return page.getByRole("menu");
}

test.beforeEach(async ({ request }) => {
  await services(request);
});

test("a window of several services has a row for each, of one service none", async ({ page }) => {
  await page.goto(at(WINDOW, BOTH));
  const tip = await point(page, 1, 0.3, `service ${API}`);
  await expect(tip).toContainText("all samples of this service");
  await expect(tip).toContainText("60");
  await point(page, 1, 0.8, `service ${WEB}`);
  await point(page, 3, 0.3, "walk");
  await expect(page.getByTestId("rows")).toHaveValue("auto");

  await page.goto(at(WINDOW, { query: `{service="${API}"}` }));
  await point(page, 1, 0.3, "main");
  // Nor where a filter that names no service leaves one.
  await page.goto(at(WINDOW, { query: `{service=~"${API}"}` }));
  await point(page, 1, 0.3, "main");
});

test("a link that names a frame and no rows shows what it showed before there were rows", async ({ page }) => {
  await page.goto(at(WINDOW, { ...BOTH, focus: "main;walk", frame: "main;walk" }));
  await drawn(page);
  await expect(page.getByTestId("rows")).toHaveValue("none");
  // All samples of the function, of both services.
  await expect(page.getByTestId("selected-frame")).toContainText("90 samples, 90.0 % of the total");
  // Nor do rows come once nothing is named any more.
  await page.getByTestId("flamegraph").press("Escape");
  await expect.poll(() => parameter(page, "group")).toBe("none");
});

test("a click zooms a row; its way stands in the address, with the rows by which it is named", async ({ page }) => {
  await page.goto(at(WINDOW, BOTH));
  const { width } = await drawn(page);
  const graph = page.getByTestId("flamegraph");
  await graph.click({ position: { x: width * 0.8, y: ROW + 9 } });
  await expect.poll(() => parameter(page, "focus")).toBe(`service=${WEB}`);
  expect(parameter(page, "group")).toBe("auto");
  await expect(page.getByTestId("reset-zoom")).toBeVisible();
  await expect(page.getByTestId("selected-frame")).toContainText(`service ${WEB}, label`);
  await expect(page.getByTestId("selected-frame")).toContainText("40 samples");
  // The same by keys, and the same page from the address.
  await graph.press("ArrowDown");
  await expect.poll(() => parameter(page, "frame")).toBe(`service=${WEB};main`);
  await page.reload();
  await expect(page.getByTestId("selected-frame")).toContainText("main, native");
  await page.goBack();
  await page.goBack();
  await expect(page.getByTestId("reset-zoom")).toHaveCount(0);
  await point(page, 1, 0.3, `service ${API}`);
});

test("rows are chosen, of several labels, and stay in sight where nothing else is asked", async ({ page }) => {
  await page.goto(at(WINDOW, BOTH));
  await drawn(page);
  await page.getByTestId("rows").selectOption("node,service");
  await expect.poll(() => parameter(page, "group")).toBe("node,service");
  await point(page, 1, 0.3, "node synthetic");
  await point(page, 2, 0.8, `service ${WEB}`);
  await point(page, 3, 0.8, "main");
  await page.getByTestId("rows").selectOption("pod");
  await point(page, 1, 0.3, "no pod");
  await page.getByTestId("rows").selectOption("none");
  await point(page, 1, 0.3, "main");
});

test("the menu of a row is that of its value: filter, exclude, compare", async ({ page }) => {
  await page.goto(at(WINDOW, { ...BOTH, group: "node,service" }));
  const menu = await openMenu(page, 2, 0.8);
  await expect(menu).toHaveAccessibleName(`Frame service ${WEB}`);
  await expect(menu.getByRole("menuitem", { name: /Callers and callees/ })).toHaveCount(0);
  await menu.getByRole("menuitem", { name: /^Filter/ }).click();
  await expect.poll(() => parameter(page, "query")).toBe(`{node="synthetic",service="${WEB}"}`);
  await page.goBack();
  await (await openMenu(page, 2, 0.8)).getByRole("menuitem", { name: /^Exclude/ }).click();
  await expect.poll(() => parameter(page, "query")).toContain(`service!="${WEB}"`);
  await page.goBack();
  await (await openMenu(page, 2, 0.8)).getByRole("menuitem", { name: /^Compare with the rest/ }).click();
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  expect(parameter(page, "query")).toBe(`{node="synthetic",service="${WEB}"}`);
  expect(parameter(page, "baseQuery")).toContain(`service!="${WEB}"`);
});

test("rows are no functions: in the table, the search and the transforms", async ({ page }) => {
  await page.goto(at(WINDOW, BOTH));
  await drawn(page);
  await expect(page.getByTestId("pane")).toContainText("3 functions");
  await page.getByTestId("search").fill("rows-api");
  await expect(page.getByTestId("found")).toContainText("no frame matches");
  await page.getByTestId("search").fill("walk");
  await expect(page.getByTestId("found")).toContainText("90 samples in 2 frames");
  await page.getByTestId("search").fill("");
  // Turned round below their rows: the leaf stands first.
  await page.goto(at(WINDOW, { ...BOTH, group: "service", transform: "invert" }));
  await point(page, 1, 0.3, `service ${API}`);
  await point(page, 2, 0.2, "walk");
  await point(page, 2, 0.55, "read");
  await point(page, 3, 0.2, "main");
  await expect(page.getByTestId("pane")).toContainText("3 functions");
});

test("rows are told in the tree of frames, in the legend and in downloads", async ({ page }) => {
  await page.goto(at(WINDOW, { ...BOTH, pane: "tree", more: "key", group: "service" }));
  const tree = page.getByTestId("frame-tree");
  await expect(tree.getByRole("treeitem", { name: new RegExp(`service ${API}.*60 samples`) })).toBeVisible();
  await expect(page.getByRole("list", { name: "Rows" })).toContainText("row: all samples of a service");
  await page.getByRole("button", { name: "Download" }).click();
  const collapsed = page.getByRole("link", { name: /^Collapsed stacks/ });
  const text = await (await page.request.get((await collapsed.getAttribute("href")) as string)).text();
  expect(text.split("\n")).toContain(`${WEB};main;walk 40`);
});

test("what a row spent is told by its other labels", async ({ page }) => {
  await page.goto(at(WINDOW, { ...BOTH, group: "service", frame: `service=${WEB}`, tab: "spent" }));
  await expect(page.getByTestId("spent")).toContainText(`All samples of service ${WEB}`);
  await expect(page.getByRole("region", { name: "Spent by node" })).toContainText("100 %");
  await expect(page.getByRole("region", { name: "Spent by service" })).not.toContainText(API);
});

test("rows of a difference have no colour where nothing was shown to differ", async ({ page }) => {
  await page.goto(
    at(WINDOW, {
      ...BOTH,
      view: "compare",
      baseFrom: String(WINDOW.from),
      baseUntil: String(WINDOW.until),
      group: "service",
      theme: "light",
    }),
  );
  // A window beside itself: nothing differs, so that rows keep their own grey.
  await point(page, 1, 0.3, `service ${API}`);
  await page.mouse.move(0, 0);
  const seen = [...(await pixels(page, "flamegraph")).keys()];
  const spread = (colour: number) => {
    const parts = [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255];
    return Math.max(...parts) - Math.min(...parts);
  };
  expect(Math.max(...seen.map(spread))).toBeLessThan(32);
});
