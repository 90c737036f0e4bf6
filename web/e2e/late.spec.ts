/** Answers that come late: after Back, after something else was chosen, into the middle of what a hand types. */
import type { Page } from "@playwright/test";
import { drawn, graphs, stored, WINDOW } from "./known.ts";
import { at, expect, held, parameter, settled, test } from "./stack.ts";

const prog = (name: string) => ({ name, module: "prog" });

/** Longer than the page takes for what it would do by itself. */
const calm = (page: Page) => settled(700, async () => page.url());

/** Back by the browser, of which the page has been told. */
function back(page: Page): Promise<void> {
  return page.evaluate(() => {
    const left = new Promise((told) => addEventListener("popstate", told, { once: true }));
    history.back();
    return left.then(() => {});
  });
}

/** A step for Back. */
async function step(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Icicle", exact: true }).click();
  await expect.poll(() => parameter(page, "layout")).toBe("flame");
}

test("what Enter began in the selector ends with Back", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await step(page);
  const answer = await held(page, /api\/v1\/top\?.*from=1000&until=2000/);
  const box = page.getByTestId("query");
  await box.fill('{process="nothing-has-this-name"}');
  const asked = page.waitForRequest(/from=1000&/);
  await box.press("Enter");
  await asked;
  await back(page);
  await expect.poll(() => parameter(page, "layout")).toBeNull();
  answer();
  await calm(page);
  expect(parameter(page, "query")).toBeNull();
});

test("versions are not compared any more where something else was chosen before they were known", async ({
  page,
  windows,
}) => {
  await page.goto(at(windows.after));
  await drawn(page);
  await step(page);
  await page.getByRole("button", { name: "Graph", exact: true }).click();
  await page.getByTestId("query").fill('{mode="kernel"}');
  await page.getByTestId("query").press("Enter");
  await expect.poll(() => parameter(page, "query")).toBe('{mode="kernel"}');
  const answer = await held(page, /api\/v1\/series\?.*by=version/);
  const asked = page.waitForRequest(/series\?.*by=version/);
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").fill("compare versions");
  await page.keyboard.press("Enter");
  await asked;
  await back(page);
  await expect.poll(() => parameter(page, "query")).toBeNull();
  answer();
  await calm(page);
  expect(parameter(page, "view")).toBeNull();
  await expect(page.getByTestId("said")).toHaveCount(0);
});

test("a lane that the page opens leaves what is typed into the boxes of lanes", async ({ page, windows }) => {
  const busiest = await held(page, "**/api/v1/top*");
  await page.goto(at(windows.after, { view: "timeline" }));
  const box = page.getByTestId("lane-cpu");
  await box.pressSequentially("7x");
  busiest();
  await expect(page.getByTestId("lane-opened")).toBeVisible();
  await expect(box).toHaveValue("7x");
  await expect(box).toBeFocused();
});

test("what arrows have picked in the palette stays picked where values come before it", async ({ page, request }) => {
  const query = await stored(request, "pickable", [
    { frames: [prog("main"), prog("pickable_a")], samples: 40 },
    { frames: [prog("main"), prog("pickable_b")], samples: 30 },
  ]);
  const answer = await held(page, "**/api/v1/search*");
  await page.goto(at(WINDOW, query));
  await drawn(page);
  await page.keyboard.press("Control+k");
  const field = page.getByTestId("palette");
  await field.fill("pickable");
  const picked = page.locator(".palette .picked");
  await expect(page.getByRole("option", { name: "pickable_b function" })).toBeVisible();
  await expect(async () => {
    await field.press("ArrowDown");
    await expect(picked).toContainText("pickable_b", { timeout: 200 });
  }).toPass();
  answer();
  await expect(page.getByRole("option", { name: /^service="pickable-.* value$/ })).toBeVisible();
  await expect(picked).toContainText("pickable_b");
  await field.press("Enter");
  await expect.poll(() => parameter(page, "match")).toContain("pickable_b");
});

test("values that come late do not take the letters that are typed elsewhere", async ({ page, windows }) => {
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  // More of them than an eye finds by itself.
  await page.route(/api\/v1\/top\?.*limit=30/, async (route) => {
    await gate;
    const answer = await route.fetch();
    const { rows, ...rest } = (await answer.json()) as { rows: Record<string, unknown>[] };
    const many = Array.from({ length: 12 }, (_, i) => ({ ...rows[0], name: `value-${i}` }));
    await route.fulfill({ response: answer, json: { ...rest, rows: many } });
  });
  await page.goto(at(windows.after));
  await drawn(page);
  const asked = page.waitForRequest(/api\/v1\/top\?.*limit=30/);
  await page.locator('.crumb-menu > button[title^="Choose a "]').click();
  await asked;
  await page.keyboard.press("/");
  const search = page.getByTestId("search");
  await expect(search).toBeFocused();
  await page.keyboard.type("re");
  release();
  await expect(page.getByRole("searchbox", { name: /^Find a / }).first()).toBeVisible();
  await page.keyboard.type("ad");
  await expect(search).toHaveValue("read");
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a name that is typed while another view is saved stays, and an older list hides no view", async ({
  page,
  request,
}) => {
  const name = `late ${process.pid}`;
  const place = `/api/v1/views/${encodeURIComponent(name)}`;
  await request.delete(place);
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let lists = 0;
  let [isOldRead, isOldTold] = [false, false];
  // The first list is read at once, and comes last.
  await page.route("**/api/v1/views", async (route) => {
    const isFirst = ++lists === 1;
    const answer = await route.fetch();
    isOldRead = true;
    if (isFirst) await gate;
    await route.fulfill({ response: answer });
    if (isFirst) isOldTold = true;
  });
  const saving = await held(page, `**${place}`);
  await page.goto("/?view=nodes");
  await page.getByRole("button", { name: "Saved views" }).click();
  const dialog = page.getByRole("dialog", { name: "Saved views" });
  const field = dialog.getByTestId("view-name");
  await field.fill(name);
  await field.press("Enter");
  await field.fill("the next one");
  await expect.poll(() => isOldRead).toBe(true);
  saving();
  const row = dialog.getByTestId("saved-views").getByRole("listitem").filter({ hasText: name });
  await expect(row).toHaveCount(1);
  await expect(dialog.getByTestId("saved-told")).toContainText("Saved");
  await expect(field).toHaveValue("the next one");
  release();
  await expect.poll(() => isOldTold).toBe(true);
  await calm(page);
  await expect(row).toHaveCount(1);
  await request.delete(place);
});

test("a file is not made of what was chosen after it was wanted", async ({ page, request }) => {
  const query = await stored(request, "unsaved", [{ frames: [prog("main"), prog("walk")], samples: 40 }]);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  await step(page);
  const answer = await held(page, "**/api/v1/flamegraph*");
  await page.getByRole("button", { name: "Refresh", exact: true }).click();
  const downloads: string[] = [];
  page.on("download", (download) => downloads.push(download.suggestedFilename()));
  await page.getByRole("button", { name: /^Share/ }).click();
  await page.getByRole("button", { name: /Save as an HTML file/ }).click();
  await expect(page.getByText("Saved as soon as the graph is there.")).toBeVisible();
  await page.getByRole("link", { name: "Nodes", exact: true }).click();
  await expect.poll(() => parameter(page, "view")).toBe("nodes");
  answer();
  await expect(page.getByTestId("said")).toContainText("Nothing was saved");
  expect(downloads).toEqual([]);
});

test("a key whose action was not there yet acts on nothing that was chosen after it", async ({ page, request }) => {
  const stacks = [{ frames: [prog("main"), prog("walk")], samples: 40 }];
  const [first, second] = [await stored(request, "keyed-a", stacks), await stored(request, "keyed-b", stacks)];
  const file = await held(page, /\/assets\/Frames-.*\.js$/);
  await page.goto(at(WINDOW, first));
  await expect.poll(() => graphs(page)).toBeGreaterThan(0);
  await page.getByTestId("flamegraph").focus();
  await page.keyboard.press("i");
  await page.getByTestId("query").fill(second.query ?? "");
  await page.getByTestId("query").press("Enter");
  await expect.poll(() => parameter(page, "query")).toBe(second.query);
  file();
  await drawn(page);
  await calm(page);
  expect(parameter(page, "transform")).toBeNull();
});
