import type { Page } from "@playwright/test";
import { course } from "./known.ts";
import {
  at,
  busyOnly,
  colours,
  comparison,
  expect,
  hoverRoot,
  parameter,
  pixels,
  placeOf,
  test,
  zoomStays,
} from "./stack.ts";

/** How much of the graph's height the page shows, once it is drawn at the height that its box has now. */
function seenOfGraph(page: Page): Promise<number> {
  return page.getByTestId("flamegraph").evaluate(async (graph) => {
    // The first frame tells the graph of its box's new height, the second draws it.
    for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame);
    const main = (graph.closest("main") as Element).getBoundingClientRect();
    const { top, bottom } = graph.getBoundingClientRect();
    return (Math.min(bottom, main.bottom) - Math.max(top, main.top)) / (bottom - top);
  });
}

test.describe("compare", () => {
  test("of the whole machine, what began stands out and can be singled out", async ({ page, windows }) => {
    await page.goto(comparison(windows));
    await page.getByRole("tab", { name: "Functions" }).click();
    const table = page.getByRole("grid", { name: "Functions of both windows" });
    await expect(table.getByRole("row").nth(1)).toBeVisible();
    await page.getByTestId("only").selectOption("significant");
    await expect.poll(() => parameter(page, "only")).toBe("significant");
    await expect(table.locator(".vtable-row.same")).toHaveCount(0);
    await expect(table.locator(".vtable-row.grew, .vtable-row.new").first()).toBeVisible();
    await expect(page.getByTestId("verdict")).toContainText(/[1-9]\d* causes? \(\d+ of \d+ frames\): /);
  });

  test("windows are dragged as a whole, by an edge and with keys; Back undoes", async ({ page, windows }) => {
    await page.goto(comparison(windows));
    const length = windows.after.until - windows.after.from;
    const box = await placeOf(page.getByTestId("window-comparison"));
    const grab = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    await page.mouse.move(grab.x, grab.y);
    await page.mouse.down();
    await page.mouse.move(grab.x - 60, grab.y + 5, { steps: 6 });
    await page.mouse.up();
    await expect.poll(() => Number(parameter(page, "from"))).toBeLessThan(windows.after.from);
    await expect.poll(() => Number(parameter(page, "until")) - Number(parameter(page, "from"))).toBe(length);
    await expect.poll(() => parameter(page, "baseFrom")).toBe(String(windows.before.from));
    await page.goBack();
    await expect.poll(() => parameter(page, "from")).toBe(String(windows.after.from));

    const edge = await placeOf(page.getByTestId("edge-base-until"));
    await page.mouse.move(edge.x + edge.width / 2, edge.y + edge.height / 2);
    await page.mouse.down();
    await page.mouse.move(edge.x - 40, edge.y + 20, { steps: 6 });
    await page.mouse.up();
    await expect.poll(() => Number(parameter(page, "baseUntil"))).toBeLessThan(windows.before.until);
    await expect.poll(() => parameter(page, "baseFrom")).toBe(String(windows.before.from));

    const early = Number(parameter(page, "baseUntil"));
    await page.getByRole("slider", { name: "End of window A, before" }).focus();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => Number(parameter(page, "baseUntil"))).toBeGreaterThan(early);
  });

  test("shares instead of rates, widths of one side, a second selector", async ({ page, windows }) => {
    await page.goto(comparison(windows));
    await page.getByTestId("fold-sides").click();
    await page.getByTestId("normalize").selectOption("share");
    await expect.poll(() => parameter(page, "normalize")).toBe("share");
    await expect.poll(() => colours(page)).toBeGreaterThan(2);
    // The picture of rates stays until that of shares is there, and what is said of a frame goes with its picture.
    await expect(async () => {
      await expect(await hoverRoot(page)).toContainText("share", { timeout: 1000 });
    }).toPass();
    await page.getByRole("combobox", { name: "Selector of A" }).fill('mode="kernel"');
    await page.getByRole("combobox", { name: "Selector of A" }).press("Enter");
    await expect.poll(() => parameter(page, "baseQuery")).toBe('{mode="kernel"}');
    await page.reload();
    await expect(page.getByRole("combobox", { name: "Selector of A" })).toHaveValue('{mode="kernel"}');
    await expect(page.getByTestId("normalize")).toHaveValue("share");
  });

  test("says in sentences what grew, and a click zooms to it", async ({ page, windows }) => {
    await page.goto(comparison(windows));
    const changes = page.getByTestId("changes");
    const sentence = changes.getByRole("button").filter({ hasText: windows.busy }).first();
    await expect(sentence).toContainText(/→ .*cores \(\+.*, between \+.* and \+.*\)/);
    await sentence.click();
    // The graph that it zooms comes into sight.
    await expect.poll(() => seenOfGraph(page)).toBeGreaterThan(0.9);
    await zoomStays(page);
    await page.goBack();
    await expect(page.getByTestId("reset-zoom")).toBeHidden();
    await expect(sentence).toBeVisible();
  });

  test("a graph that a sentence brought into sight stays there whatever comes above it, until the person scrolls", async ({
    page,
    windows,
  }) => {
    await page.goto(comparison(windows));
    const arrives = () =>
      page.evaluate(() => {
        const late = document.createElement("div");
        late.style.cssText = "flex: none; height: 700px";
        document.querySelector("main")?.prepend(late);
      });
    await page.getByTestId("changes").getByRole("button").filter({ hasText: windows.busy }).first().click();
    await expect.poll(() => seenOfGraph(page)).toBeGreaterThan(0.9);
    await arrives();
    expect(await seenOfGraph(page)).toBeGreaterThan(0.9);
    await page.mouse.wheel(0, -5000);
    await expect.poll(() => seenOfGraph(page)).toBeLessThan(0.5);
    await arrives();
    expect(await seenOfGraph(page)).toBeLessThan(0.5);
  });

  test("only what is new or gone: swapped sides are each other's", async ({ page, windows, request }) => {
    const from = windows.before.from;
    const stack = (leaf: string, samples: number) => ({ frames: [{ name: "main" }, { name: leaf }], samples });
    const seconds = [
      ...Array.from({ length: 8 }, () => stack("wait", 10)),
      ...Array.from({ length: 8 }, () => stack("walk", 10)),
    ];
    const query = await course(request, "turns", from, seconds);
    const sides = { before: { from, until: from + 8_000 }, after: { from: from + 8_000, until: from + 16_000 } };
    await page.goto(comparison({ ...windows, ...sides }, { ...query, only: "new", pane: "table", tab: "functions" }));
    const rows = page.getByRole("grid", { name: "Functions of both windows" }).locator(".vtable-row");
    await expect(rows).toHaveCount(1);
    await expect(rows.filter({ hasText: "walk" })).toContainText("new");
    await page.getByRole("tab", { name: "Causes" }).click();
    await expect(page.getByTestId("changes")).toContainText("seen since");
    await page.goBack();
    await page.getByTestId("only").selectOption("gone");
    await expect(rows.filter({ hasText: "wait" })).toContainText("gone");
    await page.getByRole("button", { name: "Swap" }).click();
    await expect(rows.filter({ hasText: "walk" })).toContainText("only in A");
    await page.goBack();
    await expect(rows.filter({ hasText: "wait" })).toContainText("gone");
    await page.goBack();
    await expect(page.getByTestId("only")).toHaveValue("new");
  });

  test("functions are ranked by what they take themselves, unless the address says otherwise", async ({
    page,
    windows,
    request,
  }) => {
    const { from } = windows.before;
    const second = (samples: number) => ({ frames: ["main", "serve", "walk"].map((name) => ({ name })), samples });
    const seconds = [...Array.from({ length: 8 }, () => second(2)), ...Array.from({ length: 8 }, () => second(16))];
    const query = await course(request, "leads", from, seconds);
    const sides = { before: { from, until: from + 8_000 }, after: { from: from + 8_000, until: from + 16_000 } };
    const first = page.getByRole("grid", { name: "Functions of both windows" }).locator(".vtable-row").first();
    for (const [said, leader] of [
      [{}, "walk"],
      [{ measure: "self" }, "walk"],
      [{ measure: "total" }, "main"],
    ] as const) {
      await page.goto(comparison({ ...windows, ...sides }, { ...query, ...said, tab: "functions" }));
      await expect(first.locator("bdi")).toHaveText(leader);
      await expect(first).toHaveClass(/grew/);
      expect(parameter(page, "measure")).toBe("measure" in said ? said.measure : null);
    }
    // What was chosen stays where something else is.
    await page.getByTestId("only").selectOption("significant");
    await expect.poll(() => parameter(page, "only")).toBe("significant");
    expect(parameter(page, "measure")).toBe("total");
    await expect(first.locator("bdi")).toHaveText("main");
  });

  test("numbers of both sides are told in the unit that is chosen, wherever they stand", async ({
    page,
    windows,
    request,
  }) => {
    const { from } = windows.before;
    const second = (samples: number) => ({ frames: [{ name: "main" }, { name: "walk" }], samples });
    const seconds = [...Array.from({ length: 8 }, () => second(2)), ...Array.from({ length: 8 }, () => second(16))];
    const query = await course(request, "units", from, seconds);
    const sides = { before: { from, until: from + 8_000 }, after: { from: from + 8_000, until: from + 16_000 } };
    await page.goto(comparison({ ...windows, ...sides }, { ...query, match: "walk" }));
    const [verdict, found] = [page.getByTestId("verdict"), page.getByTestId("found")];
    await expect(verdict).toContainText("0.100 → 0.800 cores");
    await expect(found).toContainText("0.100 → 0.800 cores, 16 → 128 samples in 1 frame");
    const unit = page.getByTestId("pair-unit");
    await unit.selectOption("time");
    await expect.poll(() => parameter(page, "unit")).toBe("time");
    await expect(verdict).toContainText("800 ms → 6.40 s of CPU time");
    await expect(page.getByTestId("changes")).toContainText(
      /walk.*: 800\sms → 6\.40\ss of CPU time \(\+5\.60\ss, between \+.*s and \+.*s\), 8\.00×/,
    );
    await expect(found).toContainText("800 ms → 6.40 s of CPU time, 16 → 128 samples in 1 frame");
    await expect(await hoverRoot(page)).toContainText("6.40 s");
    await page.reload();
    await expect(unit).toHaveValue("time");
    await page.getByRole("tab", { name: "Service" }).click();
    const table = page.getByRole("grid", { name: "Both windows by service" });
    const cells = table.locator(".vtable-row").getByRole("gridcell");
    await expect(cells.nth(1)).toHaveText(/^800\sms$/);
    await expect(cells.nth(2)).toHaveText(/^6\.40\ss$/);
    await expect(cells.nth(3)).toHaveText(/^\+5\.60\ss$/);
    await unit.selectOption("samples");
    await expect(verdict).toContainText("16 → 128 samples");
    await page.goBack();
    await expect(verdict).toContainText("6.40 s of CPU time");
    // A frame's history, and where the level changed, are in the unit of the chart.
    await page.goto(at({ from, until: from + 16_000 }, { ...query, unit: "time", frame: "main;walk" }));
    await expect(page.getByTestId("frame-since")).toContainText(/at most 8\d\d ms\/s/);
    await expect(page.getByTestId("largest-change")).toHaveAttribute("title", /From 100 to 800 ms\/s/);
  });

  test("the table and the graph are one: a row shows its frame, a frame its row; Back undoes", async ({
    page,
    windows,
  }) => {
    // By total, so that callers, whose frames lie near the root, are among the first rows.
    await page.goto(comparison(windows, { query: busyOnly(windows), tab: "functions", measure: "total" }));
    const table = page.getByRole("grid", { name: "Functions of both windows" });
    const row = table.locator(".vtable-row").first();
    const name = (await row.locator("bdi").textContent()) as string;
    await row.click();
    // What is taken in a table leaves it in sight, and marks the row; the frame is one click away.
    await expect(table.locator(".vtable-row.chosen bdi")).toHaveText(name);
    await page.getByRole("tab", { name: "Frame" }).click();
    await expect(page.getByTestId("frame-panel").locator(".frame-name")).toHaveText(name);
    await expect.poll(() => parameter(page, "frame")).toContain(name);
    // Of all of B; in A the process did not run.
    const sides = page.getByTestId("frame-shares").locator("tbody tr");
    await expect(sides.nth(0).locator("td").first()).toHaveText("–");
    await expect(sides.nth(1).locator("td").first()).toHaveText(/^\d[\d.]*\s%$/);
    await page.goBack();
    await expect(page.getByTestId("frame-panel")).toHaveCount(0);
    await page.goBack();
    await expect.poll(() => parameter(page, "frame")).toBeNull();
    await page.getByTestId("flamegraph").hover({ position: { x: 60, y: 19 * 2 + 8 } });
    await expect(table.locator(".vtable-row.pointed")).not.toHaveCount(0);
  });

  test("confidence and measure are the server's to judge by, and stay over a reload", async ({
    page,
    windows,
    request,
  }) => {
    await page.goto(comparison(windows, { more: "sides" }));
    const slider = page.getByRole("slider", { name: "confidence" });
    await expect(slider).toHaveAttribute("aria-valuetext", /95/);
    await slider.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => parameter(page, "confidence")).toBe("0.999");
    await page.getByTestId("measure").selectOption("self");
    await page.reload();
    await expect(page.getByTestId("measure")).toHaveValue("self");
    await expect(slider).toHaveAttribute("aria-valuetext", /99[.]9/);
    const parameters = new URLSearchParams({
      from: String(windows.after.from),
      until: String(windows.after.until),
      base_from: String(windows.before.from),
      base_until: String(windows.before.until),
      measure: "self",
      confidence: "0.999",
    });
    const answer = await request.get(`/api/v1/diff?${parameters}`);
    const { tested, significant } = (await answer.json()) as { tested: number; significant: number };
    // On a machine that is very busy with other things, the reader may get too little time to be found at such a
    // confidence.
    const said = significant > 0 ? `${significant} of ${tested} frame` : /no significant change|too few samples/;
    await expect(page.getByTestId("verdict")).toContainText(said);
  });

  test("an A/A check shows what chance alone would colour", async ({ page, windows }) => {
    await page.goto(
      comparison(windows, {
        query: busyOnly(windows),
        more: "data",
        baseFrom: String(windows.after.from),
        baseUntil: String(windows.after.until),
      }),
    );
    const control = page.getByTestId("control");
    await expect(control).toContainText(/A\/A check (passed \(|found )\d+ of \d+/);
    await control.getByRole("link").click();
    const middle = Math.round((windows.after.from + windows.after.until) / 2);
    await expect.poll(() => parameter(page, "baseUntil")).toBe(String(middle));
    await expect.poll(() => parameter(page, "from")).toBe(String(middle));
    await page.goBack();
    await expect.poll(() => parameter(page, "baseUntil")).toBe(String(windows.after.until));
  });

  test("warns where windows share time, and where no agent was", async ({ page, windows }) => {
    await page.goto(
      comparison(windows, {
        more: "data",
        baseFrom: String(windows.after.from),
        baseUntil: String(windows.after.until),
      }),
    );
    await expect(page.getByTestId("caveats")).toContainText("A and B share");
    // Long before the agent began, and within what a chart may span.
    const long = windows.before.from - 7_200_000;
    await page.goto(comparison(windows, { more: "data", baseFrom: String(long), baseUntil: String(long + 60_000) }));
    await expect(page.getByTestId("caveats")).toContainText("No agent covered");
  });

  test("the chart shows both of two selectors", async ({ page, windows, request }) => {
    const queries = { query: busyOnly(windows), baseQuery: '{mode="kernel"}' };
    const begin = { baseFrom: String(windows.after.from), baseUntil: String(windows.after.until) };
    const asked = page.waitForResponse((answer) => {
      const { pathname, searchParams } = new URL(answer.url());
      return pathname.endsWith("/series") && searchParams.get("query") === queries.baseQuery;
    });
    await page.goto(comparison(windows, { ...queries, ...begin, more: "sides" }));
    const address = new URL((await asked).url());
    const answer = await request.get(`${address.pathname}${address.search}`);
    const { series, other } = (await answer.json()) as {
      series: { cores: (number | null)[] }[];
      other: { cores: (number | null)[] } | null;
    };
    const sum = (i: number) =>
      [...series, ...(other ? [other] : [])].reduce((all, { cores }) => all + (cores[i] ?? 0), 0);
    expect(Math.max(...(series[0]?.cores ?? []).map((_, i) => sum(i)))).toBeGreaterThan(0);
    await expect(page.getByText("as a line over B")).toBeVisible();
    await expect(page.locator(".chart .figures")).toContainText(/^A [\d.]+, B [\d.]+ cores/);
    const blue = await page
      .getByTestId("timechart")
      .evaluate((element) => getComputedStyle(element).getPropertyValue("--side-a").trim());
    expect((await pixels(page, "timechart")).get(Number.parseInt(blue.slice(1), 16))).toBeGreaterThan(20);
    await page.getByTestId("by").selectOption("node");
    await expect(page.getByText("as a line over B")).toBeVisible();
    await page.getByRole("button", { name: "Clear Selector of A" }).click();
    await expect(page.getByText("as a line over B")).toBeHidden();
  });

  test("locked windows keep one length", async ({ page, windows }) => {
    await page.goto(comparison(windows, { more: "sides" }));
    await page.getByTestId("lock").check();
    const length = (a: string, b: string) => Number(parameter(page, b)) - Number(parameter(page, a));
    await expect.poll(() => length("baseFrom", "baseUntil")).toBe(windows.after.until - windows.after.from);
    await page.getByRole("slider", { name: "Start of window B, after" }).focus();
    await page.keyboard.press("Shift+ArrowLeft");
    await expect.poll(() => length("from", "until")).toBeGreaterThan(windows.after.until - windows.after.from);
    expect(length("baseFrom", "baseUntil")).toBe(length("from", "until"));
  });

  test("leads there from a window and back", async ({ page, windows }) => {
    const { from, until } = windows.after;
    await page.goto(`/?from=${from}&until=${until}`);
    await page.getByRole("button", { name: "Compare with previous window" }).click();
    await expect.poll(() => parameter(page, "view")).toBe("compare");
    // The page chooses side A, and says so; the address leaves it to the page.
    await expect(page.getByTestId("baseline")).toContainText("previous window");
    const edge = async (name: string) => Number(await page.getByRole("slider", { name }).getAttribute("aria-valuenow"));
    expect(await edge("Start of window A, before")).toBe(from - (until - from));
    expect(await edge("End of window A, before")).toBe(from);
    expect(parameter(page, "baseFrom")).toBeNull();
    await page.goBack();
    await expect.poll(() => parameter(page, "view")).toBeNull();
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
  });
});

/** The hue in degrees that most of the graph's coloured pixels have. */
async function mainHue(page: Page): Promise<number> {
  const hues = new Map<number, number>();
  for (const [colour, count] of await pixels(page, "flamegraph")) {
    const [r, g, b] = [colour >> 16, (colour >> 8) & 255, colour & 255];
    const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)];
    if (most - least < 60) continue;
    const [from, others] = most === r ? [0, g - b] : most === g ? [120, b - r] : [240, r - g];
    const hue = Math.round((from + (60 * others) / (most - least) + 360) % 360);
    hues.set(hue, (hues.get(hue) ?? 0) + count);
  }
  return [...hues].reduce((best, one) => (one[1] > best[1] ? one : best), [-1, 0])[0];
}

test("what grew is orange for who tells no red, in this browser from then on", async ({ page, windows }) => {
  const isRed = async () => Math.abs((await mainHue(page)) - 4) <= 3;
  const isOrange = async () => Math.abs((await mainHue(page)) - 30) <= 3;
  await page.goto(comparison(windows, { more: "key" }));
  await expect.poll(isRed).toBe(true);
  await page.getByTestId("pair").selectOption("orange-blue");
  await expect.poll(isOrange).toBe(true);
  // It is about who looks: a link of somebody else has it, too.
  await page.goto(comparison(windows));
  await expect.poll(isOrange).toBe(true);
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").fill("red and blue");
  await page.getByRole("option", { name: "Differences in red and blue" }).click();
  await expect.poll(isRed).toBe(true);
});
