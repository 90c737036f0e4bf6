/** What a hand is at stays while answers come: the row, the frame, the place, the focus. */
import type { Page, Route } from "@playwright/test";
import { fleet } from "./fleet.ts";
import { drawn, graphs, stored, WINDOW } from "./known.ts";
import { askAnew, at, colours, comparison, expect, held, parameter, placeOf, test } from "./stack.ts";

const prog = (name: string) => ({ name, module: "prog" });

/** What is answered from now on is changed by what is given last. */
async function changed<T>(page: Page, address: string): Promise<(change: (answer: T) => T) => void> {
  let change = (answer: T) => answer;
  await page.route(address, async (route: Route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: change((await answer.json()) as T) });
  });
  return (next) => {
    change = next;
  };
}

type Agent = ReturnType<typeof fleet>[number];

/** Changes the address as Back and Forward do, while a hand is at something. */
async function goTo(page: Page, change: Record<string, number>): Promise<void> {
  await page.evaluate((parameters) => {
    const to = new URL(location.href);
    for (const [name, value] of Object.entries(parameters)) to.searchParams.set(name, String(value));
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, change);
}

test("the row that keys have come to is what Enter takes, wherever a newer answer puts it", async ({ page }) => {
  const [first, second, third] = fleet(3) as [Agent, Agent, Agent];
  let nodes = [first, second, third];
  await page.route("**/api/v1/nodes", (route) => route.fulfill({ json: { nodes } }));
  await page.goto("/?view=nodes&sort=node");
  const table = page.getByRole("grid", { name: "Table of agents" });
  await expect(table.locator(".vtable-row").first()).toContainText(first.node);
  await table.focus();
  await page.keyboard.press("ArrowDown");
  await expect(table.locator(".vtable-row.active")).toContainText(second.node);
  // The list asks again by itself; of what comes, one stands before all others.
  nodes = [...nodes, { ...first, node: "a-new-one", instance: "new" } as typeof first];
  await expect(table.locator(".vtable-row").filter({ hasText: "a-new-one" })).toBeVisible();
  await expect(table.locator(".vtable-row.active")).toContainText(second.node);
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "agent")).toBe("instance-1");
  // What had the row goes: the next one comes to its place.
  nodes = nodes.filter(({ node }) => node !== second.node);
  await expect(table.locator(".vtable-row").filter({ hasText: second.node })).toHaveCount(0);
  await expect(table.locator(".vtable-row.active")).toContainText(third.node);
});

test("what has the focus keeps it where a newer answer has another order", async ({ page, windows }) => {
  const answers = await changed<{ series: unknown[] }>(page, "**/api/v1/series*");
  await page.goto(at({ from: windows.before.from, until: windows.after.until }, { by: "process" }));
  const layers = page.getByTestId("layers").locator("button.layer-name");
  await expect.poll(() => layers.count()).toBeGreaterThan(2);
  const names = () => layers.allTextContents();
  let isTurned = false;
  for (const nth of [0, 1, 2]) {
    const before = await names();
    const layer = layers.nth(nth);
    await layer.focus();
    const name = await layer.textContent();
    isTurned = !isTurned;
    answers((answer) => (isTurned ? { ...answer, series: answer.series.toReversed() } : answer));
    await askAnew(page);
    await expect.poll(names).toEqual(before.toReversed());
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe(name);
  }
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("the tree of frames keeps the row, the focus and the place while answers come", async ({ page, request }) => {
  const child = (name: string, samples: number) => ({ frames: [prog("main"), prog(name)], samples });
  const many = Array.from({ length: 60 }, (_, i) => child(`leaf_${i}_`, 100 - i));
  const query = await stored(request, "stays-tree", many);
  await page.goto(at(WINDOW, { ...query, pane: "tree" }));
  const tree = page.getByTestId("frame-tree");
  const row = (name: string) => tree.getByRole("treeitem").filter({ hasText: name });
  // An answer comes that has a frame more, the largest of all.
  const answered = async (name: string) => {
    await stored(request, "stays-tree", [child(name, 900)]);
    await askAnew(page);
    await expect.poll(() => tree.evaluate((box) => box.scrollHeight)).toBeGreaterThan(rows);
    rows = await tree.evaluate((box) => box.scrollHeight);
  };
  await row("leaf_3_").click();
  let rows = await tree.evaluate((box) => box.scrollHeight);
  await expect(tree.locator(".active")).toContainText("leaf_3_");

  await answered("added_a");
  await expect(tree.locator(".active")).toContainText("leaf_3_");
  // Keys go on from where the click was.
  await expect(tree).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await expect(tree.locator(".active")).toContainText("leaf_4_");

  // What is selected was scrolled out of sight, and is not brought back.
  await tree.evaluate((box) => box.scrollTo(0, 800));
  await expect(row("leaf_4_")).toHaveCount(0);
  await answered("added_b");
  await expect.poll(() => tree.evaluate((box) => box.scrollTop)).toBe(800);
  await expect(row("leaf_4_")).toHaveCount(0);

  // Nothing is selected any more: the place of the keys is theirs all the same.
  await page.keyboard.press("Escape");
  await expect.poll(() => parameter(page, "frame")).toBeNull();
  await answered("added_c");
  await page.keyboard.press("ArrowDown");
  await expect(tree.locator(".active")).toContainText("leaf_5_");
});

test("the graph keeps its menu and where it is scrolled to while answers come", async ({ page, request }) => {
  const deep = Array.from({ length: 70 }, (_, i) => prog(`level_${i}_`));
  const query = await stored(request, "stays-graph", [{ frames: deep, samples: 40 }]);
  await page.goto(at(WINDOW, { ...query, group: "none" }));
  await expect.poll(() => graphs(page)).toBeGreaterThan(0);
  await drawn(page);
  const answered = async (name: string) => {
    const before = await graphs(page);
    await stored(request, "stays-graph", [{ frames: [prog(name)], samples: 10 }]);
    await askAnew(page);
    await expect.poll(() => graphs(page)).toBeGreaterThan(before);
  };
  const box = page.locator(".flame-scroll");
  const top = () => box.evaluate((element) => element.scrollTop);
  // With a frame selected at its other end.
  await page.getByTestId("flamegraph").focus();
  await page.keyboard.press("ArrowDown");
  await expect.poll(() => parameter(page, "frame")).toBe("#");
  // What opens below the graph may take a part of its height.
  await placeOf(page.locator(".flame-scroll"));
  await box.evaluate((element) => element.scrollTo(0, 300));
  await expect.poll(top).toBe(300);
  await answered("zz_behind_all");
  expect(await top()).toBe(300);

  await page.keyboard.press("ArrowDown");
  await expect.poll(() => parameter(page, "frame")).toBe("level_0_");
  await page.keyboard.press("Shift+F10");
  const menu = page.getByRole("menu", { name: "Frame level_0_" });
  await expect(menu.getByRole("menuitem").first()).toBeFocused();
  await page.keyboard.press("ArrowDown");
  const second = menu.getByRole("menuitem").nth(1);
  await expect(second).toBeFocused();
  await answered("a_first_one");
  await expect(second).toBeFocused();
  await page.keyboard.press("f");
  await expect(menu).toHaveCount(0);
  await expect.poll(() => parameter(page, "match")).toContain("level_0_");
});

test("a drag on the chart begins at its moment, whatever answer arrives in the middle of it", async ({
  page,
  windows,
}) => {
  const { before, after } = windows;
  await page.goto(at(after));
  const brush = page.getByTestId("brush");
  const box = await placeOf(brush);
  const release = await held(page, "**/api/v1/series*");
  await goTo(page, { from: before.from });
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.4, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, y, { steps: 3 });
  release();
  await expect.poll(async () => Number(await brush.getAttribute("aria-valuemin"))).toBeLessThan(after.from);
  await page.mouse.move(box.x + box.width * 0.9, y, { steps: 3 });
  await page.mouse.up();
  const began = after.from + 0.4 * (after.until - after.from);
  await expect.poll(() => Math.abs(Number(parameter(page, "from")) - began)).toBeLessThan(200);
  expect(Number(parameter(page, "until"))).toBeGreaterThan(began);
});

test("a window that a hand holds stays in it, also where both windows become others", async ({ page, windows }) => {
  await page.goto(comparison(windows));
  const box = await placeOf(page.getByTestId("window-comparison"));
  const grab = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await page.mouse.move(grab.x, grab.y);
  await page.mouse.down();
  await page.mouse.move(grab.x - 60, grab.y + 5, { steps: 6 });
  await goTo(page, { baseFrom: windows.before.from + 1000 });
  await expect.poll(() => parameter(page, "baseFrom")).toBe(String(windows.before.from + 1000));
  // Until the page has drawn what is new.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 200))));
  await page.mouse.up();
  await expect.poll(() => Number(parameter(page, "from"))).toBeLessThan(windows.after.from);
});

test("a drag over the heatmap marks the time that it began at, in a newer answer too", async ({ page, windows }) => {
  const { before, after } = windows;
  await page.goto(at(after, { view: "heatmap" }));
  await expect.poll(() => colours(page, "heatmap")).toBeGreaterThan(3);
  const box = await placeOf(page.getByTestId("heatmap"));
  const release = await held(page, "**/api/v1/heatmap*");
  await goTo(page, { from: before.from });
  const busy = page.locator(".heat-box");
  await expect(busy).toHaveAttribute("aria-busy", "true");
  const y = box.y + box.height / 2;
  const x = (part: number) => box.x + 46 + (box.width - 56) * part;
  await page.mouse.move(x(0.5), y);
  await page.mouse.down();
  await page.mouse.move(x(0.6), y, { steps: 3 });
  release();
  await expect(busy).toHaveAttribute("aria-busy", "false");
  await page.mouse.move(x(0.97), y, { steps: 3 });
  await page.mouse.up();
  const began = after.from + (after.until - after.from) / 2;
  await expect
    .poll(() => Math.abs(Number((parameter(page, "markA") ?? "").split("-")[0]) - began))
    .toBeLessThanOrEqual(1000);
});

test("the menu of a value stays where it is, also where the value is gone with a newer answer", async ({
  page,
  windows,
}) => {
  const answers = await changed<{ series: unknown[] }>(page, "**/api/v1/series*");
  await page.goto(at({ from: windows.before.from, until: windows.after.until }, { by: "process" }));
  const layers = page.getByTestId("layers").locator("button.layer-name");
  await expect.poll(() => layers.count()).toBeGreaterThan(2);
  const number = await layers.count();
  await layers.nth(1).click({ button: "right" });
  const menu = page.getByRole("menu");
  const place = await placeOf(menu);
  answers((answer) => ({ ...answer, series: answer.series.toSpliced(1, 1) }));
  await askAnew(page);
  await expect(layers).toHaveCount(number - 1);
  expect(await placeOf(menu)).toEqual(place);
  await page.keyboard.press("Escape");
  await expect(menu).toHaveCount(0);
  await expect(page.locator("main")).toBeFocused();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a drag of the timeline goes on from what was in sight, whatever answer arrives in the middle", async ({
  page,
  windows,
}) => {
  const { before, after } = windows;
  const begin = after.from + 2_000;
  await page.goto(at(after, { view: "timeline", zoom: `${begin}-${begin + 2_000}` }));
  await expect(page.getByTestId("lane-opened")).toBeVisible();
  await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(2);
  const box = await placeOf(page.getByTestId("timeline"));
  const release = await held(page, "**/api/v1/timeline*");
  await goTo(page, { from: before.from });
  const told = page.getByTestId("timeline-range");
  await expect(told).toHaveAttribute("aria-busy", "true");
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 30, y, { steps: 3 });
  release();
  await expect(told).toHaveAttribute("aria-busy", "false");
  await page.mouse.move(x + 60, y, { steps: 3 });
  await page.mouse.up();
  await expect.poll(() => Math.abs(Number((parameter(page, "zoom") ?? "").split("-")[0]) - begin)).toBeLessThan(500);
});
