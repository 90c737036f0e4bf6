import type { Page } from "@playwright/test";
import { FRAMES, stacksOf } from "../bench/synthetic.ts";
import { drawn, stored, TAKEN, WINDOW } from "./known.ts";
import { type Frame, otlp } from "./otlp.ts";
import { at, colours, expect, held, parameter, pointAt, test } from "./stack.ts";

/** No part of the page is wider than the window. */
async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

test("names that are HTML are text everywhere", async ({ page, request }) => {
  const evil = '<img src="x" onerror="window.broken=1"><script>window.broken=2</script>';
  const main = { name: "<b>main</b>", module: "</td><i>lib.so" };
  const query = await stored(request, "html", [{ frames: [main, { name: evil, module: "a&amp;b.so" }], samples: 7 }]);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  const graph = page.getByTestId("flamegraph");
  await pointAt(graph, { x: 200, y: 45 }, evil);
  await graph.click({ position: { x: 200, y: 45 } });
  await expect(page.getByTestId("frame-panel").locator(".frame-name")).toHaveText(evil);
  await page.getByRole("tab", { name: "Functions" }).click();
  await expect(page.getByRole("grid", { name: "Functions" })).toContainText(`"window.broken=1">`);
  await graph.press("h");
  await expect(page.getByTestId("chips")).toContainText("without");
  await page.getByTestId("search").fill("<img");
  await page.getByRole("button", { name: "Tree", exact: true }).click();
  await expect(page.getByTestId("frame-tree")).toContainText("<b>main</b>");
  expect(await page.evaluate(() => (window as { broken?: number }).broken)).toBeUndefined();
  await expect(page.locator("main img, main script, main td i, main b b")).toHaveCount(0);
});

test("names from right to left stay in their place", async ({ page, request }) => {
  // Arabic, Hebrew, and a name that turns what follows round (U+202E).
  const names = ["معالجة_الطلب", "עיבוד::בקשה(int)", "pay\u202Edab"];
  const frames = names.map((name) => ({ name, module: "lib.so" }));
  const query = await stored(request, "rtl", [{ frames, samples: 5 }]);
  await page.goto(at(WINDOW, { ...query, unit: "samples" }));
  await drawn(page);
  const table = page.getByRole("grid", { name: "Functions" });
  for (const name of ["معالجة_الطلب", "עיבוד::בקשה(int)", "pay⟨U+202E⟩dab"]) {
    const row = table.getByRole("row").filter({ hasText: name });
    await expect(row).toContainText("5");
    // The share still stands to the right of the name.
    const [text, number] = [row.locator("bdi"), row.getByRole("gridcell").last()];
    const [left, right] = [await text.boundingBox(), await number.boundingBox()];
    expect(left?.x ?? 0).toBeLessThan(right?.x ?? 0);
  }
  await page.getByTestId("search").fill("معالجة");
  await expect(page.getByTestId("found")).toContainText("100 %");
});

test("a name of 5,000 letters is there whole, and breaks no layout", async ({ page, request }) => {
  const long = `ns::outer<${"Pair<int, ".repeat(450)}int${">".repeat(450)}>::the_end(char const*)`;
  const query = await stored(request, "long", [
    { frames: [{ name: "main" }, { name: long, module: "lib.so" }], samples: 3 },
  ]);
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto(at(WINDOW, query));
    await drawn(page);
    await page.getByTestId("flamegraph").click({ position: { x: 100, y: 45 } });
    const panes = page.getByRole("tab");
    if (width < 700) await panes.getByText("Frame", { exact: true }).click();
    await expect(page.getByTestId("frame-panel").locator(".frame-name")).toHaveText(long);
    expect(await overflow(page)).toBe(0);
    if (width < 700) await panes.getByText("Frames", { exact: true }).click();
    // The zoom is in the address, however long the way to the frame is.
    await expect.poll(() => page.url().length).toBeLessThan(4000);
    await page.reload();
    await drawn(page);
    await expect(page.getByTestId("reset-zoom")).toBeVisible();
  }
});

test("one sample is a graph", async ({ page, request }) => {
  const query = await stored(request, "one", [{ frames: [{ name: "main" }, { name: "only" }], samples: 1 }]);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  const tooltip = await pointAt(page.getByTestId("flamegraph"), { x: 200, y: 45 }, "only");
  await expect(tooltip).toContainText("100 %");
  await page.goto(
    at(WINDOW, { ...query, view: "compare", baseFrom: String(TAKEN - 40_000), baseUntil: String(TAKEN - 20_000) }),
  );
  await expect(page.getByTestId("verdict")).toContainText("nothing to compare");
});

test("no samples is said, not drawn", async ({ page }) => {
  await page.goto(at(WINDOW, { query: '{service="nobody-has-this"}', transform: "invert", match: "x" }));
  await expect(page.getByText("No samples in this window.")).toBeVisible();
});

test("of a hundred services the largest have names, the others are counted, and the table has all", async ({
  page,
  request,
}) => {
  const end = `of-100-${process.pid}-${TAKEN}`;
  const frames = [{ name: "main" }];
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      request.post("/v1development/profiles", {
        headers: { "content-type": "application/x-protobuf" },
        data: Buffer.from(
          otlp({ service: `s${i}-${end}`, at: TAKEN, frames, stacks: [{ frames: [0], samples: i + 1 }] }),
        ),
      }),
    ),
  );
  for (const answer of answers) expect(answer.status(), await answer.text()).toBe(200);
  const samples = (100 * 101) / 2;
  await page.goto(at(WINDOW, { query: `{service=~"s.*-${end}"}`, rank: "service", pane: "table", more: "data" }));
  const layers = page.getByTestId("layers").getByRole("listitem");
  await expect(layers).toHaveCount(20);
  await expect(layers.first()).toContainText(`s99-${end}`);
  await expect(layers.last()).toContainText("Other (81)");
  // The others are as much as they are.
  const others = (81 * 82) / 2;
  await expect(layers.last()).toHaveAttribute(
    "title",
    new RegExp(`${others.toString().replace(/(\d)(?=\d{3}$)/, "$1.")} samples`),
  );
  const swatches = await layers
    .locator(".swatch")
    .evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
  // A layer has its name's colour, whatever else is in the chart: two of twenty may share one of sixty.
  expect(new Set(swatches).size).toBeGreaterThan(10);
  await expect.poll(() => colours(page, "timechart")).toBeGreaterThan(10);
  const fifth = await layers.nth(4).locator(".layer-name").getAttribute("aria-label");
  const alone = `{service="${fifth?.replace("Only service ", "")}"}`;
  await page.goto(at(WINDOW, { query: alone }));
  await expect(layers).toHaveCount(1);
  const own = await layers.locator(".swatch").evaluate((one) => getComputedStyle(one).backgroundColor);
  expect(own).toBe(swatches[4]);
  await page.goBack();
  await expect(layers).toHaveCount(20);
  const table = page.getByRole("grid", { name: "Ranked by service" });
  await expect(table).toHaveAttribute("aria-rowcount", "101");
  await expect(table.getByRole("row").nth(1)).toContainText(`s99-${end}`);
  expect(await overflow(page)).toBe(0);
  await page.getByRole("tab", { name: "Top lists" }).click();
  await expect(page.getByRole("button", { name: "all 100 by service, in the table" })).toBeVisible();
  const shown = await page.locator(".quality .figure").first().getAttribute("title");
  expect(Number(shown?.replace(/\D/g, ""))).toBe(samples);

  // What stands for the others is in sight whatever the list is scrolled to.
  await expect(layers.last()).toBeInViewport({ ratio: 0.9 });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByTestId("fold-chart").click();
  await expect(layers.last()).toBeInViewport({ ratio: 0.9 });
  expect(await overflow(page)).toBe(0);

  // All of them are offered, once the server has said which: what was offered for another place is gone meanwhile.
  const answer = await held(page, "**/api/v1/labels/service/values*");
  await page.getByTestId("fold-filter").click();
  const box = page.getByTestId("query");
  const offers = page.getByRole("listbox", { name: "Suggestions" });
  await box.fill("service");
  await box.press("!");
  await expect(offers.getByRole("option", { name: "!=", exact: true })).toBeVisible();
  await box.pressSequentially(`="s`);
  await expect(offers.getByRole("option")).toHaveCount(0);
  await box.pressSequentially(`9-${end.slice(0, 4)}`);
  answer();
  await expect(offers.getByRole("option", { name: `s9-${end}`, exact: true })).toBeVisible();
  await box.fill(`service="${end}`);
  await expect(offers.getByRole("option")).toHaveCount(100);
  await box.press("ArrowUp");
  await expect(offers.getByRole("option").last()).toBeInViewport({ ratio: 0.9 });
});

test("counts of thousands stand whole beside the graph", async ({ page, request }) => {
  const stacks = [{ frames: [{ name: "main", module: "prog" }], samples: 8765 }];
  const { query } = await stored(request, "thousands", stacks);
  await page.goto(at(WINDOW, { query: query ?? "", unit: "samples" }));
  await drawn(page);
  const amounts = page.locator(".amount em");
  await expect(amounts.first()).toHaveText(/^8\D765$/);
  const cut = await amounts.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length);
  expect(cut).toBe(0);
});

test("two selections at the same time are called by their names, not before and after", async ({ page, request }) => {
  const main = { name: "main", module: "prog" };
  const [a, b] = await Promise.all(
    ["left", "right"].map((name) =>
      stored(request, name, [
        { frames: [main, { name: `only_${name}`, module: "prog" }], samples: 300 },
        { frames: [main, { name: "shared", module: "prog" }], samples: name === "left" ? 100 : 700 },
      ]),
    ),
  );
  const [left, right] = [`left-${process.pid}-${TAKEN}`, `right-${process.pid}-${TAKEN}`];
  const base = { baseQuery: a?.query ?? "", baseFrom: String(WINDOW.from), baseUntil: String(WINDOW.until) };
  await page.goto(at(WINDOW, { view: "compare", ...b, ...base }));
  await drawn(page);
  const changes = page.getByTestId("changes");
  await expect(changes).toContainText(`only in ${left}`);
  await expect(changes).toContainText(`only in ${right}`);
  await expect(page.locator(".sides .side.base bdi")).toHaveText(left);
  await expect(page.getByRole("slider", { name: `Window B, ${right}`, exact: true })).toBeVisible();
  const only = page.getByTestId("only");
  await expect(only.locator("option")).toContainText(["everything", "differs", `only in ${right}`, `only in ${left}`]);
  await only.selectOption("gone");
  await page.getByRole("tab", { name: "Functions" }).click();
  const table = page.locator(".tablebox");
  await expect(table.locator(".tablebox-title")).toContainText(`only in ${left} A, ${left} · B, ${right}`);
  await expect(table.locator(".vtable-row")).toHaveCount(1);
  await only.selectOption("");
  await pointAt(page.getByTestId("flamegraph"), { x: 200, y: 30 }, `A, ${left}`);
  await page.getByRole("button", { name: "Tree", exact: true }).click();
  await expect(page.getByTestId("frame-tree")).toContainText(`: ${left} 0 samples`);
  for (const part of [changes, page.locator(".sides .side"), page.locator(".graph")])
    for (const text of await part.allInnerTexts()) {
      expect(text).not.toMatch(/\b(before|after)\b/i);
      expect(text).not.toContain("→");
    }
  // Nor has what is told of a frame an arrow: callees, and whose time it is.
  await page.getByTestId("frame-tree").getByRole("treeitem").filter({ hasText: "main" }).first().click();
  await page.getByRole("tab", { name: "Frame", exact: true }).click();
  await expect(page.getByTestId("frame-panel")).toContainText("Callees");
  await expect(page.getByTestId("frame-panel")).not.toContainText("→");
  await page.getByRole("tab", { name: "Spent by" }).click();
  await expect(page.getByRole("region", { name: "Spent by service" })).toContainText(left);
  await expect(page.getByTestId("spent")).not.toContainText("→");
  // The same the other way round is no matter of time either.
  await page.goto(
    at({ from: WINDOW.from - 60_000, until: WINDOW.until - 60_000 }, { view: "compare", ...b, ...base, baseQuery: "" }),
  );
  await expect(page.locator(".sides .side.base bdi")).toBeEmpty();
});

test.describe("a function that calls itself 5,000 times", () => {
  const main: Frame = { name: "main", module: "prog" };
  const recur: Frame = { name: "recur", module: "prog" };
  const leaf: Frame = { name: "leaf", module: "prog" };
  const deep = [main, ...Array<Frame>(5000).fill(recur), leaf];

  test("is drawn to its end, searched once, and merged", async ({ page, request }) => {
    const query = await stored(request, "deep", [
      { frames: deep, samples: 3 },
      { frames: [main, { name: "other" }], samples: 1 },
    ]);
    await page.goto(at(WINDOW, { ...query, match: "recur" }));
    await drawn(page);
    await expect(page.getByTestId("found")).toContainText("75.0 %");
    await expect(page.getByTestId("found")).toContainText("3 samples in 5 000 frames");
    const graph = page.getByTestId("flamegraph");
    // Rows are virtual: the canvas is no taller than the window.
    expect(await graph.evaluate((canvas) => (canvas as HTMLCanvasElement).height)).toBeLessThan(2000);
    const scroller = page.locator(".flame-scroll");
    await scroller.evaluate((box) => {
      box.scrollTop = box.scrollHeight;
    });
    const bottom = await graph.evaluate((canvas) => canvas.clientHeight - 10);
    await pointAt(graph, { x: 600, y: bottom }, "leaf");
    await graph.click({ position: { x: 600, y: bottom } });
    await expect(page.getByTestId("frame-panel")).toContainText("leaf");
    // Such a way is longer than an address may be: a reload finds it all the same.
    await page.reload();
    await expect(page.getByTestId("reset-zoom")).toBeVisible();
    await page.getByTestId("reset-zoom").click();
    await graph.press("r");
    await expect(page.getByTestId("found")).toContainText("3 samples in 1 frame");
    await expect.poll(() => parameter(page, "transform")).toBe("merge");
    await page.goBack();
    await expect(page.getByTestId("found")).toContainText("5 000 frames");
  });

  test("is turned round, and put between its callers and callees", async ({ page, request }) => {
    const query = await stored(request, "deep-turned", [{ frames: deep, samples: 2 }]);
    await page.goto(at(WINDOW, { ...query, transform: "invert", match: "main" }));
    await drawn(page);
    await expect(page.getByTestId("found")).toContainText("2 samples in 1 frame");
    await page.goto(at(WINDOW, { ...query, transform: "sandwich:recur" }));
    await drawn(page);
    await page.getByRole("button", { name: "Tree", exact: true }).click();
    await expect(page.getByTestId("frame-tree").getByRole("treeitem").first()).toContainText("recur");
  });
});

test.describe("a tree of more than a hundred thousand frames", () => {
  test.use({ allowErrors: [/ERR_FAILED|net::/] });

  test("is grown beside the page, or by it where that can't be", async ({ page, request }) => {
    const service = `large-${process.pid}-${TAKEN}`;
    const stacks = stacksOf(120_000);
    const answer = await request.post("/v1development/profiles", {
      headers: { "content-type": "application/x-protobuf" },
      data: Buffer.from(otlp({ service, at: TAKEN, frames: FRAMES, stacks })),
    });
    expect(answer.status(), await answer.text()).toBe(200);
    const samples = stacks.reduce((sum, stack) => sum + stack.samples, 0);
    const shown = async () =>
      Number((await page.locator(".quality .figure").first().getAttribute("title"))?.replace(/\D/g, ""));
    const workers: string[] = [];
    page.on("worker", (worker) => workers.push(worker.url()));
    await page.goto(at(WINDOW, { query: `{service="${service}"}`, more: "data" }));
    await drawn(page);
    expect(await shown()).toBe(samples);
    expect(workers.filter((url) => url.includes("/assets/parse.worker-"))).toHaveLength(1);
    await page.route("**/assets/parse.worker-*.js", (route) => route.abort());
    await page.reload();
    await drawn(page);
    expect(await shown()).toBe(samples);

    // To change so many frames takes a while on a slow machine: that is said, and can be cancelled and begun again.
    const machine = await page.context().newCDPSession(page);
    await machine.send("Emulation.setCPUThrottlingRate", { rate: 12 });
    await page.getByTestId("flamegraph").press("i");
    await expect(page.locator(".progress")).toContainText("changing the graph");
    await page.getByTestId("cancel").click();
    await expect.poll(() => parameter(page, "transform")).toBeNull();
    await expect(page.locator(".progress")).toBeEmpty();
    await expect(page.getByTestId("flamegraph")).toBeVisible();
    await page.goBack();
    await expect.poll(() => parameter(page, "transform")).toBe("invert");
    await expect(page.locator(".progress")).toContainText("changing the graph");
    await machine.send("Emulation.setCPUThrottlingRate", { rate: 1 });
    await expect(page.locator(".progress")).toBeEmpty();
    await expect(page.getByTestId("chips")).toContainText("inverted");
    await expect(page.getByTestId("flamegraph")).toBeVisible();
    const self = page.getByRole("grid", { name: "Functions" });
    await expect(self.locator(".vtable-row").first()).toBeVisible();
    // A link to it opens it as well.
    await page.reload();
    await drawn(page);
    await expect(page.getByTestId("chips")).toContainText("inverted");
    await page.goBack();
    await expect(page.getByTestId("chips")).toHaveCount(0);
  });
});

test("the keyboard alone changes the tree and takes it back", async ({ page, request }) => {
  const frames = ["main", "serve", "read"].map((name) => ({ name, module: "prog" }));
  const query = await stored(request, "keys", [
    { frames, samples: 8 },
    { frames: frames.slice(0, 2), samples: 2 },
  ]);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  const graph = page.getByTestId("flamegraph");
  await graph.focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  await expect(page.getByTestId("selected-frame")).toContainText("serve");
  await page.keyboard.press("Shift+F10");
  const menu = page.getByRole("menu", { name: "Frame serve" });
  await expect(menu.getByRole("menuitem").first()).toBeFocused();
  // A phone's own bars come and go: the menu stays, and in sight.
  const { width, height } = page.viewportSize() ?? { width: 1280, height: 720 };
  await page.setViewportSize({ width, height: height / 2 });
  await expect(menu).toBeInViewport({ ratio: 0.9 });
  await page.setViewportSize({ width, height });
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "transform")).toBe("sandwich:serve");
  await expect(page.getByTestId("chips")).toContainText("callers and callees of serve");
  await expect(graph).toBeFocused();
  await page.keyboard.press("i");
  await expect.poll(() => parameter(page, "transform")).toBe("sandwich:serve;invert");
  await page.goBack();
  await page.goBack();
  await expect(page.getByTestId("chips")).toBeHidden();
  await expect.poll(() => parameter(page, "transform")).toBeNull();
  await page.getByRole("button", { name: "Tree", exact: true }).click();
  const tree = page.getByRole("tree");
  await tree.focus();
  await page.keyboard.press("End");
  await expect(tree.getByRole("treeitem", { selected: true })).toHaveAccessibleName(
    /^read ?, native: 0\.020 cores, 8 samples, 80/,
  );
});

test("what is opened in the tree of frames stays open over a reload and in a link, and Back closes it", async ({
  page,
  request,
}) => {
  const path = (...names: string[]) => names.map((name) => ({ name, module: "prog" }));
  const query = await stored(request, "rows", [
    { frames: path("main", "read"), samples: 8 },
    { frames: path("main", "write", "flush"), samples: 4 },
    { frames: path("other", "walk"), samples: 2 },
    { frames: path("other", "sleep"), samples: 1 },
  ]);
  await page.goto(at(WINDOW, { ...query, pane: "tree" }));
  const tree = page.getByRole("tree");
  const rows = () => tree.getByRole("treeitem").locator("bdi").allTextContents();
  await expect.poll(rows).toEqual(["all", "main", "other"]);
  await tree.getByRole("treeitem").nth(2).click();
  await tree.getByRole("treeitem").nth(1).click();
  const open = ["all", "main", "read", "write", "other", "walk", "sleep"];
  await expect.poll(rows).toEqual(open);
  await page.reload();
  await expect.poll(rows).toEqual(open);
  // By key: what is closed is left out, and what is below it is forgotten.
  await tree.focus();
  await page.keyboard.press("ArrowLeft");
  await expect.poll(rows).toEqual(["all", "main", "other", "walk", "sleep"]);
  await page.goBack();
  await expect.poll(rows).toEqual(open);
  await page.goBack();
  await expect.poll(rows).toEqual(["all", "main", "other", "walk", "sleep"]);
  await page.goBack();
  await expect.poll(rows).toEqual(["all", "main", "other"]);
  await expect.poll(() => parameter(page, "open")).toBeNull();
});
