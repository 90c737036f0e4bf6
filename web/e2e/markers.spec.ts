/** Moments on the time axes, sent to the real server in known places, and two versions whose difference is known. */
import type { APIRequestContext, Locator, Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { course, TAKEN } from "./known.ts";
import type { Frame } from "./otlp.ts";
import { askAnew, at, colours, expect, parameter, test } from "./stack.ts";

const prog = (name: string): Frame => ({ name, module: "/opt/bin/shop" });
const BEGIN = TAKEN - 120_000;
const RANGE = { from: BEGIN, until: BEGIN + 24_000 };
/** When version 15 takes over. */
const CHANGE = BEGIN + 12_000;

let turns = 0;

/** Twelve seconds of version 14, then of 15, in which `walk` takes ten times as much; `sync` takes the same. */
async function shop(request: APIRequestContext): Promise<{ service: string; query: string }> {
  const half = (version: string, samples: number) =>
    Array.from({ length: 12 }, () => ({
      frames: [prog("main"), prog("housekeeping"), prog("walk")],
      samples,
      version,
    }));
  const steady = ["14", "15"].flatMap((version) =>
    Array.from({ length: 12 }, () => ({ frames: [prog("main"), prog("sync")], samples: 20, version })),
  );
  const name = `shop${turns++}`;
  const { query = "" } = await course(request, name, BEGIN, [...half("14", 4), ...half("15", 40)]);
  await course(request, name, BEGIN, steady);
  return { service: `${name}-${process.pid}-${BEGIN}`, query };
}

async function post(request: APIRequestContext, marker: Record<string, unknown>): Promise<void> {
  const answer = await request.post("/api/v1/markers", { data: marker });
  expect(answer.status(), await answer.text()).toBe(200);
}

const signs = (page: Page) => page.getByTestId("markers").first().locator(".marker");

test("markers stand at their moments, open to their text, and lead to a comparison of before and after", async ({
  page,
  request,
}) => {
  const { service, query } = await shop(request);
  const labels = { service, version: "15" };
  await post(request, { time: CHANGE, title: "shop 15 is out", text: "two lines\nof text", labels });
  await post(request, { time: BEGIN + 6_000, title: "cache cleared", labels: { service } });
  await post(request, { time: BEGIN + 6_000, title: "of another service", labels: { service: "other" } });
  await page.goto(at(RANGE, { query, tz: "utc" }));
  await expect(page.getByTestId("brush")).toBeVisible();
  const plot = (await page.getByTestId("brush").boundingBox()) ?? { x: 0, width: 0 };
  const cleared = page.getByTestId("markers").getByRole("button", { name: /note: cache cleared/ });
  const box = (await cleared.boundingBox()) ?? { x: 0, width: 0, height: 0 };
  expect(Math.abs(box.x + box.width / 2 - (plot.x + plot.width / 4))).toBeLessThan(2);
  expect(Math.min(box.width, box.height)).toBeGreaterThanOrEqual(24);
  await expect(page.getByTestId("markers").getByRole("button", { name: /another service/ })).toHaveCount(0);
  // The note and the version that the server found itself are at one moment: one sign for both.
  const both = page.getByTestId("markers").getByRole("button", { name: /1 version, 1 note/ });
  await both.click();
  const panel = page.getByTestId("marker-panel");
  await expect(panel.getByRole("listitem")).toHaveCount(2);
  await expect(panel.getByText("shop 15 is out")).toBeVisible();
  await expect(panel.locator(".marker-text")).toHaveText("two lines\nof text");
  await expect(panel.getByText("version=15").first()).toBeVisible();
  expect(await serious(page)).toEqual([]);
  await panel.getByRole("button", { name: "Compare before/after" }).first().click();
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  const number = (name: string) => Number(parameter(page, name));
  expect(number("baseUntil")).toBe(number("from"));
  expect(Math.abs(number("from") - CHANGE)).toBeLessThan(200);
  expect(number("until") - number("from")).toBe(number("baseUntil") - number("baseFrom"));
  expect(number("until") - number("from")).toBeGreaterThan(11_000);
  await expect(page.getByTestId("verdict")).toContainText(/1 cause .*: walk/);
  // The comparison's chart has them too.
  await expect(signs(page).first()).toBeVisible();
});

test("two versions: from a marker, a value's menu and the palette; the causes name the function", async ({
  page,
  request,
}) => {
  const { service, query } = await shop(request);
  const isCompared = async () => {
    await expect.poll(() => parameter(page, "baseQuery")).toContain('version="14"');
    expect(parameter(page, "query")).toContain('version="15"');
    expect(parameter(page, "query")).toContain(`service="${service}"`);
    const number = (name: string) => Number(parameter(page, name));
    expect(number("until") - number("from")).toBe(number("baseUntil") - number("baseFrom"));
    expect(number("baseUntil")).toBeLessThanOrEqual(CHANGE + 200);
    expect(number("from")).toBeGreaterThanOrEqual(CHANGE - 200);
    await expect(page.getByTestId("verdict")).toContainText(/1 cause .*: walk/);
    await expect(page.getByTestId("changes").locator(".cause-name")).toHaveText(/walk/);
    await expect(page.locator(".side.base bdi")).toHaveText("14");
    await expect(page.locator(".side.comparison bdi")).toHaveText("15");
    await expect(page.getByTestId("said")).toContainText(
      /A is 14 \(288 samples\).*B is 15 \(720 samples\).*most samples/,
    );
  };
  await page.goto(at(RANGE, { query, by: "service" }));
  await page
    .getByTestId("layers")
    .getByRole("button", { name: `Only service ${service}` })
    .click({ button: "right" });
  await page.getByRole("menuitem", { name: "Compare versions" }).click();
  await isCompared();
  await page.goto(at(RANGE, { query }));
  await page
    .getByTestId("markers")
    .getByRole("button", { name: /version/ })
    .click();
  await page.getByTestId("marker-panel").getByRole("button", { name: "Compare versions" }).first().click();
  await isCompared();
  await page.goto(at(RANGE, { query }));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").fill("compare versions");
  await page.keyboard.press("Enter");
  await isCompared();
  // A version's own menu: this one against the one with most samples beside it.
  await page.goto(at(RANGE, { query, by: "version" }));
  await page
    .getByTestId("layers")
    .getByRole("button", { name: /^Only .*version 14$/ })
    .click({ button: "right" });
  await page.getByRole("menuitem", { name: "Compare versions" }).click();
  await isCompared();
});

test("a function's history by version, over all that is kept", async ({ page, request }) => {
  const { query } = await shop(request);
  // The range holds version 15 alone; the history has both, each with what it takes while it runs.
  const frame = { frame: "main;housekeeping;walk", split: "version", unit: "cores" };
  await page.goto(at({ from: CHANGE + 1_000, until: RANGE.until }, { query, ...frame }));
  const lines = page.getByTestId("version-history").getByRole("listitem");
  await expect(lines).toHaveCount(2);
  await expect(lines.nth(0)).toContainText(/^14 .*48 samples/);
  await expect(lines.nth(1)).toContainText(/^15 .*480 samples/);
  await page.getByRole("button", { name: "Compare the last two" }).click();
  // In this range only one of the two ran.
  await expect(page.getByTestId("said")).toContainText("Only version 15");
  await page.getByTestId("split-version").uncheck();
  await expect(page.getByTestId("frame-since")).toBeVisible();
  await expect.poll(() => parameter(page, "split")).toBeNull();
});

test("where one version ran there is nothing to compare, and it is said", async ({ page, request }) => {
  const { query } = await shop(request);
  await page.goto(at({ from: BEGIN, until: BEGIN + 8_000 }, { query }));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").fill("compare versions");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("said")).toContainText("Only version 14");
  expect(parameter(page, "view")).toBeNull();
});

test("keys reach markers: one stop of Tab, arrows, Enter, Escape back; the list has them too", async ({
  page,
  request,
}) => {
  const { service, query } = await shop(request);
  for (const i of [1, 2, 3]) await post(request, { time: BEGIN + i * 2_500, title: `step ${i}`, labels: { service } });
  await page.goto(at(RANGE, { query }));
  await expect(signs(page)).toHaveCount(4);
  await page.getByTestId("brush").focus();
  await page.keyboard.press("Tab");
  await expect(signs(page).nth(0)).toBeFocused();
  await page.keyboard.press("ArrowRight");
  await expect(signs(page).nth(1)).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("marker-panel")).toContainText("step 2");
  await page.keyboard.press("Escape");
  await expect(page.getByTestId("marker-panel")).toHaveCount(0);
  await expect(signs(page).nth(1)).toBeFocused();
  await page.getByRole("button", { name: /^Markers \(4\)/ }).press("Enter");
  const list = page.getByTestId("marker-list");
  await expect(list.getByRole("listitem")).toHaveCount(4);
  await list.getByRole("searchbox").fill("step 3");
  await expect(list.getByRole("listitem")).toHaveCount(1);
  expect(await serious(page)).toEqual([]);
  await list.getByTestId("show-markers").uncheck();
  await expect.poll(() => parameter(page, "markers")).toBe("0");
  await expect(page.locator(".marker")).toHaveCount(0);
  await page.reload();
  await expect(page.getByRole("button", { name: /^Markers/ })).toBeVisible();
  await expect(page.locator(".marker")).toHaveCount(0);
});

test("arrows go on from the sign that has the focus, also where an answer puts one before it", async ({
  page,
  request,
}) => {
  const { service, query } = await shop(request);
  const note = (title: string, after: number) => post(request, { time: BEGIN + after, title, labels: { service } });
  for (const i of [1, 2, 3]) await note(`step ${i}`, i * 2_500);
  await page.goto(at(RANGE, { query }));
  await expect(signs(page)).toHaveCount(4);
  const named = (title: string) => page.getByTestId("markers").first().getByRole("button", { name: title });
  await named("step 2").focus();
  await note("before all", 700);
  await askAnew(page);
  await expect(signs(page)).toHaveCount(5);
  await expect(named("step 2")).toBeFocused();
  await page.keyboard.press("ArrowRight");
  await expect(named("step 3")).toBeFocused();
});

async function middleOf(locator: Locator): Promise<number> {
  const { x, width } = (await locator.boundingBox()) ?? { x: 0, width: 0 };
  return x + width / 2;
}

test("the heatmap has them on its axis", async ({ page, request }) => {
  const { service, query } = await shop(request);
  await post(request, { time: BEGIN + 6_000, title: "in the middle", labels: { service } });
  await page.goto(at({ from: BEGIN, until: BEGIN + 12_000 }, { query, view: "heatmap" }));
  await expect.poll(() => colours(page, "heatmap")).toBeGreaterThan(2);
  const sign = page.getByTestId("markers").getByRole("button", { name: /in the middle/ });
  await expect(sign).toBeVisible();
  const whole = (await page.getByTestId("heatmap").boundingBox()) ?? { x: 0, width: 0 };
  // The labels of the axes stand left and right of the cells.
  const middle = whole.x + 46 + (whole.width - 56) / 2;
  expect(Math.abs((await middleOf(sign)) - middle)).toBeLessThan(whole.width / 20);
});

test("the timeline has them on its axis, and they follow its zoom", async ({ page, windows, request }) => {
  const { from, until } = windows.after;
  const title = `in the lane ${process.pid}`;
  await post(request, { time: Math.round((from + until) / 2), title, labels: { process: windows.busy } });
  const sign = page.getByTestId("markers").getByRole("button", { name: new RegExp(title) });
  await page.goto(at(windows.after, { view: "timeline", query: '{cpu="0"}' }));
  await expect(sign).toBeVisible();
  expect(Math.abs((await middleOf(sign)) - (await middleOf(page.getByTestId("markers"))))).toBeLessThan(60);
  const beside = `${from}-${from + 1_000}`;
  await page.goto(at(windows.after, { view: "timeline", query: '{cpu="0"}', zoom: beside }));
  await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(2);
  await expect(sign).toHaveCount(0);
});

const HOSTILE = {
  title: '<img src=x onerror="document.title=1"><b>bold</b> \u202eexe.gpj\u202c pass\u200bword',
  text: `</script><script>document.title="2"</script>\n${"x".repeat(10_000)}`,
  label: 'a"}<i>\u2066\u0000',
};

test("texts of others are shown as what they are", async ({ page, request }) => {
  const { query } = await shop(request);
  const marker = { id: "h", kind: "note", time: BEGIN + 6_000, title: HOSTILE.title, text: HOSTILE.text };
  await page.route("**/api/v1/markers?*", (route) =>
    route.fulfill({
      json: {
        ...{ complete: true, older: [], uncounted: [] },
        markers: [{ ...marker, labels: { service: HOSTILE.label } }],
      },
    }),
  );
  await page.goto(at(RANGE, { query }));
  await signs(page).first().click();
  const panel = page.getByTestId("marker-panel");
  await expect(panel.locator(".marker-title")).toContainText("<b>bold</b> ⟨U+202E⟩exe.gpj⟨U+202C⟩ pass⟨U+200B⟩word");
  await expect(panel.locator("img, script, b b, i")).toHaveCount(0);
  await expect(panel).toContainText(/\(10.045 characters\)/);
  await panel.locator("summary").click();
  await expect(panel.locator(".marker-text")).toContainText("x".repeat(9_000));
  await expect(panel).toContainText('service=a"}<i>⟨U+2066⟩⟨U+0000⟩');
  expect(await page.title()).toContain("Stakeout");
  const inside = await panel.evaluate((element) => {
    const { right, bottom } = element.getBoundingClientRect();
    return right <= innerWidth && bottom <= innerHeight && element.scrollWidth <= element.clientWidth;
  });
  expect(inside).toBe(true);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(over).toBe(0);
});

/** Ten thousand markers, as the server answers of any part of their time: the newest, and by second how many more. */
async function tenThousand(page: Page): Promise<void> {
  const all = Array.from({ length: 10_000 }, (_, i) => ({
    ...{ id: `m${i}`, kind: i % 10 === 0 ? "version" : "note", time: BEGIN + i * 2.4, text: "" },
    ...{ title: `marker ${i}.`, labels: { service: "s" } },
  }));
  await page.route("**/api/v1/markers?*", (route) => {
    const asked = new URL(route.request().url()).searchParams;
    const [from, until] = [Number(asked.get("from")), Number(asked.get("until"))];
    const here = all.filter(({ time }) => time >= from && time < until);
    const markers = here.slice(-2_000);
    const rest = here.slice(0, here.length - markers.length);
    const older = Array.from({ length: 24 }, (_, second) => {
      const begin = BEGIN + second * 1_000;
      const own = rest.filter(({ time }) => time >= begin && time < begin + 1_000);
      const version = own.filter(({ kind }) => kind === "version").length;
      return { from: begin, until: begin + 1_000, counts: { note: own.length - version, version } };
    }).filter(({ counts }) => counts.note > 0);
    const answer = { query: "", from, until, markers, older, uncounted: [], complete: older.length === 0 };
    return route.fulfill({ json: answer });
  });
}

test("markers beyond the newest are counted on the axis and in the list, which lead to them", async ({
  page,
  request,
}) => {
  const { query } = await shop(request);
  await tenThousand(page);
  await page.goto(at(RANGE, { query }));
  // No sign is missing: those of the first seconds have counts alone.
  await expect(page.getByRole("button", { name: /^Markers \(10.000\)/ })).toBeVisible();
  await signs(page).first().click();
  const panel = page.getByTestId("marker-panel");
  await expect(panel.getByRole("listitem")).toHaveCount(0);
  await expect(panel).toContainText(/^\d+ markers here, not listed/);
  expect(await serious(page)).toEqual([]);
  await panel.getByRole("button", { name: /^Zoom to all \d+$/ }).click();
  await expect.poll(() => parameter(page, "from")).toBe(String(BEGIN));
  // In that time all are told.
  await expect(page.getByRole("button", { name: /^Markers \(\d{3}\)/ })).toBeVisible();
  await page.goBack();
  await page.getByRole("button", { name: /^Markers \(10.000\)/ }).click();
  const list = page.getByTestId("marker-list");
  await expect(list.getByRole("status")).toContainText("the newest 100 are listed");
  await list.getByRole("button", { name: "List 100 more" }).click();
  await expect(list.locator("ol > li")).toHaveCount(200);
  const older = list.getByTestId("older-markers");
  await expect(older).toContainText(/8.000 older ones in this range/);
  // Of 417 in a second: four seconds are told at once.
  await expect(older.getByRole("listitem")).toHaveCount(5);
  await expect(older.getByRole("listitem").first()).toContainText(/^.*1\d\d versions, 1.\d{3} notes$/);
  await list.getByRole("searchbox").fill("marker 9999.");
  await expect(older).toContainText("not searched");
  expect(await serious(page)).toEqual([]);
  await older.getByRole("button").first().click();
  await expect.poll(() => parameter(page, "until")).toBe(String(BEGIN + 4_000));
  await page.getByRole("button", { name: /^Markers \(1.66\d\)/ }).click();
  await expect(page.getByTestId("marker-list").getByTestId("older-markers")).toHaveCount(0);
});

test("ten thousand markers are a few dozen signs", async ({ page, request }) => {
  const { query } = await shop(request);
  await tenThousand(page);
  await page.goto(at(RANGE, { query }));
  await expect(signs(page).first()).toBeVisible();
  // The button of the list has room beside the chart's other tools, also on a smaller screen.
  await page.setViewportSize({ width: 1280, height: 720 });
  await expect(page.getByRole("button", { name: /^Markers \(/ })).toBeVisible();
  const beyond = await page.locator(".chart > .toolbar").evaluate((bar) => bar.scrollWidth - bar.clientWidth);
  expect(beyond).toBeLessThanOrEqual(0);
  expect(await signs(page).count()).toBeLessThan(60);
  expect(await signs(page).count()).toBeGreaterThan(20);
  const boxes = await signs(page).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().x));
  for (const [i, x] of boxes.entries()) if (i > 0) expect(x - (boxes[i - 1] ?? 0)).toBeGreaterThan(11);
  // The last sign but one has the markers of its whole width.
  await signs(page)
    .nth((await signs(page).count()) - 2)
    .click();
  await expect(page.getByTestId("marker-panel")).toContainText("older markers here, not listed");
  await page.screenshot({ path: "test-results/markers-dense.png" });
});
