import { hostname } from "node:os";
import type { Page } from "@playwright/test";
import { drawn, stored, WINDOW } from "./known.ts";
import {
  at,
  busyOnly,
  colours,
  comparison,
  expect,
  held,
  hoverRoot,
  parameter,
  placeOf,
  rested,
  test,
  zoomStays,
} from "./stack.ts";

/** The number of samples that the page says the window has. */
async function samplesShown(page: Page): Promise<number> {
  const title = await page.locator(".quality .figure").first().getAttribute("title");
  return Number(title?.replace(/\D/g, ""));
}

test.describe("explore", () => {
  test("shows who used the cores, and frames with names", async ({ page, windows, request }) => {
    // This machine's agent alone, without the samples of other tests' senders.
    const query = `{node="${hostname()}"}`;
    await page.goto(at(windows.after, { by: "process", query, more: "data" }));
    await expect(
      page.getByTestId("layers").getByRole("button", { name: `Only process ${windows.busy}` }),
    ).toBeVisible();
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    const { from, until } = windows.after;
    const parameters = new URLSearchParams({ query, from: String(from), until: String(until) });
    const answer = await request.get(`/api/v1/flamegraph?${parameters}`);
    const { samples } = (await answer.json()) as { samples: number };
    expect(samples).toBeGreaterThan(20);
    await expect.poll(() => samplesShown(page)).toBe(samples);
    await expect(page.getByRole("grid", { name: "Functions" }).getByRole("row").nth(1)).toContainText(/[a-z_]{4,}/);
  });

  test("a dragged window becomes the range, and Back undoes it", async ({ page, windows }) => {
    const range = { from: windows.before.from, until: windows.after.until };
    await page.goto(at(range));
    const box = await placeOf(page.getByTestId("brush"));
    await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 50, { steps: 5 });
    await page.mouse.up();
    const length = range.until - range.from;
    await expect.poll(() => Number(parameter(page, "from"))).toBeGreaterThan(range.from);
    const tolerance = (length / box.width) * 3;
    await expect
      .poll(() => Math.abs(Number(parameter(page, "from")) - (range.from + length * 0.25)))
      .toBeLessThan(tolerance);
    await expect
      .poll(() => Math.abs(Number(parameter(page, "until")) - (range.from + length * 0.5)))
      .toBeLessThan(tolerance);
    await page.goBack();
    await expect.poll(() => parameter(page, "from")).toBe(String(range.from));
    await page.getByTestId("zoom-out").click();
    await expect.poll(() => Number(parameter(page, "until")) - Number(parameter(page, "from"))).toBe(length * 2);
  });

  test("a click on a layer narrows everything to it", async ({ page, windows, request }) => {
    await page.goto(at(windows.after, { by: "process", more: "data" }));
    await page.getByRole("button", { name: `Only process ${windows.busy}` }).click();
    await expect(page.getByTestId("query")).toHaveValue(busyOnly(windows));
    await expect.poll(() => parameter(page, "query")).toBe(busyOnly(windows));
    const parameters = new URLSearchParams({
      query: busyOnly(windows),
      from: String(windows.after.from),
      until: String(windows.after.until),
    });
    const answer = await request.get(`/api/v1/flamegraph?${parameters}`);
    const { samples } = (await answer.json()) as { samples: number };
    expect(samples).toBeGreaterThan(20);
    await expect.poll(() => samplesShown(page)).toBe(samples);
  });

  test("zoom by click, kept over a reload, reset by Escape", async ({ page, windows }) => {
    await page.goto(at(windows.after, { query: busyOnly(windows) }));
    const canvas = page.getByTestId("flamegraph");
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    await canvas.click({ position: { x: 60, y: 28 } });
    await zoomStays(page);
    await canvas.focus();
    await page.keyboard.press("Escape");
    await expect(page.getByTestId("reset-zoom")).toBeHidden();
    await expect.poll(() => parameter(page, "focus")).toBeNull();
    await page.goBack();
    await expect(page.getByTestId("reset-zoom")).toBeVisible();
  });

  test("the keyboard alone walks, zooms and says where it is", async ({ page, windows }) => {
    await page.goto(at(windows.after, { query: busyOnly(windows) }));
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    await page.getByTestId("flamegraph").focus();
    const said = page.getByTestId("selected-frame");
    await page.keyboard.press("ArrowDown");
    await expect(said).toContainText(/^all, /);
    await page.keyboard.press("ArrowDown");
    await expect(said).toContainText(/samples, .*of the total/);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect(page.getByTestId("reset-zoom")).toBeVisible();
    await expect.poll(() => parameter(page, "focus")).toBeTruthy();
    await page.keyboard.press("/");
    await expect(page.getByTestId("search")).toBeFocused();
  });

  test("the share of a search is the server's, recursion counted once", async ({ page, windows, request }) => {
    await page.goto(at(windows.after));
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    await page.getByTestId("search").fill("read");
    const parameters = new URLSearchParams({
      match: "(?i).*read.*",
      from: String(windows.after.from),
      until: String(windows.after.until),
    });
    const answer = await request.get(`/api/v1/flamegraph?${parameters}`);
    const { match } = (await answer.json()) as { match: { samples: number; share: number } };
    expect(match.samples).toBeGreaterThan(0);
    const found = page.getByTestId("found");
    await expect(found).toContainText("frame");
    const digits = (await found.textContent())?.replace(/\s/g, "") ?? "";
    expect(Number(/,(\d+)samples/.exec(digits)?.[1])).toBe(match.samples);
    expect(Math.abs(Number.parseFloat(digits) / 100 - match.share)).toBeLessThan(0.001);
    await page.reload();
    await expect(page.getByTestId("search")).toHaveValue("read");
    await page.getByTestId("search").fill("/(/");
    await expect(page.locator(".search-fault")).toBeVisible();
  });

  test("a hovered frame tells samples, time and shares", async ({ page, windows }) => {
    await page.goto(at(windows.after));
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    const tooltip = await hoverRoot(page);
    await expect(tooltip).toContainText("all");
    await expect(tooltip).toContainText("100");
  });

  test("a selected frame says since when it runs", async ({ page, windows, request }) => {
    const range = { from: windows.before.from, until: windows.after.until };
    await page.goto(at(range, { query: busyOnly(windows) }));
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    await page.getByTestId("flamegraph").focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
    const panel = page.getByTestId("frame-panel");
    const name = (await panel.locator(".frame-name").textContent()) ?? "";
    const parameters = new URLSearchParams({
      query: busyOnly(windows),
      from: String(range.from),
      until: String(range.until),
      by: "mode",
      match: `^${name.replace(/[^\w]/g, "\\$&")}$`,
    });
    const answer = await request.get(`/api/v1/series?${parameters}`);
    const { times, series } = (await answer.json()) as { times: number[]; series: { cores: (number | null)[] }[] };
    const first = times.find((_, i) => series.some(({ cores }) => (cores[i] ?? 0) > 0)) ?? 0;
    expect(first).toBeGreaterThanOrEqual(windows.before.until);
    expect(first).toBeLessThan(windows.after.until);
    const said = await page.evaluate((moment) => new Date(moment).toTimeString().slice(0, 8), first);
    await expect(panel.getByTestId("frame-since")).toContainText(`first seen ${said}`);
    await expect(panel.locator(".frame-history path")).toHaveAttribute("d", /^M.*L/);
    // Frames elsewhere are no part of this one's caller.
    const figures = (row: RegExp) => panel.getByRole("row", { name: row }).getByRole("cell");
    await expect(figures(/^total/)).toHaveCount(5);
    await expect(figures(/^function \d/)).toHaveCount(4);
    await expect(figures(/^function self/)).toHaveCount(4);
    await page.goto(at({ from: windows.after.from + 2_000, until: windows.after.until }, { query: busyOnly(windows) }));
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    await page.getByTestId("flamegraph").focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
    await expect(panel.getByTestId("frame-since")).toContainText("as long as this range was watched");
  });

  test("the selected frame, the part in sight and the table's order stand in the address; Back undoes each", async ({
    page,
    windows,
  }) => {
    await page.goto(at(windows.after, { query: busyOnly(windows) }));
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    const graph = page.getByTestId("flamegraph");
    await graph.focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowDown");
    const panel = page.getByTestId("frame-panel");
    const name = (await panel.locator(".frame-name").textContent()) ?? "";
    expect(name).not.toBe("all");
    const frame = await rested(page, "frame");
    const head = page.getByRole("grid", { name: "Functions" }).getByRole("columnheader", { name: "Total" });
    await page.getByRole("tab", { name: "Functions" }).click();
    await expect.poll(() => parameter(page, "tab")).toBe("functions");
    await head.click();
    await expect(head).toHaveAttribute("aria-sort", "descending");
    await expect.poll(() => parameter(page, "sort")).toBe("-total");
    await graph.hover({ position: { x: 300, y: 30 } });
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -360);
    await page.keyboard.up("Control");
    await expect.poll(() => parameter(page, "part")).toMatch(/^[\d.]+-[\d.]+$/);
    const part = await rested(page, "part");
    await page.reload();
    await expect(head).toHaveAttribute("aria-sort", "descending");
    await expect
      .poll(() => [parameter(page, "frame"), parameter(page, "part"), parameter(page, "sort")])
      .toEqual([frame, part, "-total"]);
    await page.goBack();
    await expect.poll(() => [parameter(page, "part"), parameter(page, "sort")]).toEqual([null, "-total"]);
    await page.goBack();
    await expect.poll(() => [parameter(page, "frame"), parameter(page, "sort")]).toEqual([frame, null]);
    await page.goBack();
    await expect.poll(() => parameter(page, "tab")).toBeNull();
    await expect(panel.locator(".frame-name")).toHaveText(name);
    // The tree opens at what the address selects.
    await page.getByRole("button", { name: "Tree", exact: true }).click();
    await page.reload();
    await expect(page.getByRole("treeitem", { selected: true })).toContainText(name);
    await page.goBack();
    await page.goBack();
    await expect(panel).toBeHidden();
  });

  test("a click on a frame is one step for Back", async ({ page, windows }) => {
    await page.goto(at(windows.after, { query: busyOnly(windows) }));
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    await page.getByTestId("flamegraph").click({ position: { x: 60, y: 45 } });
    await expect(page.getByTestId("reset-zoom")).toBeVisible();
    await expect(page.getByTestId("frame-panel")).toBeVisible();
    await page.goBack();
    await expect.poll(() => [parameter(page, "focus"), parameter(page, "frame")]).toEqual([null, null]);
    await expect(page.getByTestId("frame-panel")).toBeHidden();
  });

  test("completion leads to a selector", async ({ page, windows }) => {
    await page.goto(at(windows.after));
    const box = page.getByTestId("query");
    await box.click();
    const offers = page.getByRole("listbox", { name: "Suggestions" }).first();
    await box.pressSequentially("proc");
    await offers.getByRole("option", { name: "process", exact: true }).click();
    await expect(box).toHaveValue('{process="');
    await box.pressSequentially("reader-");
    await offers.getByRole("option", { name: windows.busy, exact: true }).click();
    await expect.poll(() => parameter(page, "query")).toBe(busyOnly(windows));
  });

  test("ranks processes, with what the kernel spent for them", async ({ page, windows }) => {
    await page.goto(at(windows.after, { pane: "table" }));
    await page.getByTestId("rank").selectOption("process");
    const row = page
      .getByRole("grid", { name: "Ranked by process" })
      .getByRole("row")
      .filter({ hasText: windows.busy });
    await expect(row).toContainText("%");
    const kernel = await row.getByRole("gridcell").nth(1).textContent();
    expect(Number.parseFloat(kernel ?? "")).toBeGreaterThan(80);
    await row.click();
    await expect(page.getByTestId("query")).toHaveValue(busyOnly(windows));
    // Of a path the end is shown: what leads to a cgroup is the same for most.
    await page.getByTestId("rank").selectOption("cgroup");
    const cgroup = page.getByRole("grid", { name: "Ranked by cgroup" }).locator('.vtable-row span[title^="/"]').first();
    const path = await cgroup.getAttribute("title");
    expect(path?.endsWith((await cgroup.textContent())?.replace("…", "") ?? "")).toBe(true);
    await expect(cgroup).not.toHaveText(/^\/.*\//);
  });

  test("every download answers", async ({ page, windows, request }) => {
    await page.goto(at(windows.after));
    await page.getByRole("button", { name: "Download" }).click();
    const links = await page
      .locator(".menu-list a")
      .evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).href));
    expect(links).toHaveLength(6);
    for (const link of links) {
      const answer = await request.get(link);
      expect(answer.status(), link).toBe(200);
      expect((await answer.body()).length, link).toBeGreaterThan(100);
    }
    // Stacks that wait for their tables come later than others of their time: both are asked for again then.
    await expect(async () => {
      const table = await (await request.get(links.at(-1) as string)).text();
      const [head, ...rows] = table.trim().split(/\r?\n/);
      expect(head).toMatch(/^name,/);
      await page.reload();
      const title = page.locator(".tablebox-title b");
      await expect(title).toHaveText(/\d/);
      expect(rows.length).toBe(Number((await title.textContent())?.replace(/\D/g, "")));
    }).toPass();
  });

  test("a window without samples says what to do", async ({ page }) => {
    await page.goto(at({ from: 1_000_000_000_000, until: 1_000_000_060_000 }));
    await expect(page.getByText("No samples in this window.")).toBeVisible();
    await page.getByRole("button", { name: "Look at 24 hours" }).click();
    await expect.poll(() => parameter(page, "from")).toBe("now-24h");
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
  });
});

test.describe("a selector that can't be read", () => {
  test.use({ allowErrors: [/status of 400/] });

  test("is explained at the box, and can be corrected", async ({ page, windows }) => {
    await page.goto(at(windows.after));
    const box = page.getByTestId("query");
    await box.fill("{process=dd}");
    await box.press("Enter");
    await expect(page.locator(".querybox-error")).toBeVisible();
    await expect(box).toHaveAttribute("aria-invalid", "true");
    await box.fill("");
    await box.press("Enter");
    await expect(page.locator(".querybox-error")).toBeHidden();
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
  });

  test("is explained whatever comes between Enter and the answer: labels, a click, another control", async ({
    page,
    windows,
  }) => {
    const labels = await held(page, /api\/v1\/labels$/);
    const answer = await held(page, /api\/v1\/top\?.*from=1000&until=2000/);
    await page.goto(at(windows.after));
    const box = page.getByTestId("query");
    await box.fill("{process=dd}");
    const asked = page.waitForRequest(/from=1000&/);
    await box.press("Enter");
    await asked;
    const known = page.waitForResponse(/api\/v1\/labels$/);
    labels();
    await known;
    await box.click();
    await page.getByTestId("flamegraph").focus();
    answer();
    await expect(page.locator(".querybox-error")).toBeVisible();
    await expect(page.getByRole("listbox", { name: "Suggestions" })).toBeHidden();
    await expect(box).toHaveValue("{process=dd}");
  });
});

test.describe("a selected frame", () => {
  for (const view of ["explore", "compare"] as const) {
    test(`shows its figures, since when and its callers beside the graph, without scrolling (${view})`, async ({
      page,
      windows,
    }) => {
      await page.goto(view === "explore" ? at(windows.after) : comparison(windows));
      await expect.poll(() => colours(page)).toBeGreaterThan(1);
      await page.getByTestId("flamegraph").focus();
      for (let step = 0; step < 3; step++) await page.keyboard.press("ArrowDown");
      const panel = page.getByTestId("frame-panel");
      await expect(panel.getByTestId("frame-since")).toBeInViewport({ ratio: 1 });
      await expect(panel.getByRole("rowheader").first()).toBeInViewport({ ratio: 1 });
      await expect(panel.getByRole("heading", { name: "Callers" })).toBeInViewport({ ratio: 1 });
      await expect(page.getByTestId("minimap")).toBeInViewport({ ratio: 1 });
    });
  }

  test("leaves the map above the graph where the page scrolls", async ({ page, windows }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(at(windows.after));
    await expect.poll(() => colours(page)).toBeGreaterThan(1);
    const gap = () =>
      page.evaluate(() => {
        const [map, graph] = ["[data-testid=minimap]", ".flame-scroll"].map((one) => document.querySelector(one));
        return (graph?.getBoundingClientRect().top ?? 0) - (map?.getBoundingClientRect().bottom ?? 0);
      });
    await page.evaluate(() => document.querySelector(".flame-scroll")?.scrollIntoView({ block: "start" }));
    await page.evaluate(() => scrollBy(0, 100));
    await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(100);
    expect(await gap()).toBe(0);
  });
});

test("the table follows each letter of a search", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  const title = page.locator(".tablebox-title");
  await expect(title).toContainText("functions");
  // Behind the choice of what is listed, whose labels come later.
  const all = /[\d\s]+functions.*$/.exec((await title.textContent()) ?? "")?.[0] ?? "none";
  await page.getByTestId("search").pressSequentially("get_random", { delay: 20 });
  await expect(title).toContainText("that match");
  const names = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row .function");
  await expect(page.getByTestId("search")).toHaveValue("get_random");
  await expect
    .poll(async () => (await names.allTextContents()).filter((name) => !name.includes("get_random")))
    .toEqual([]);
  await page.getByTestId("search").fill("");
  await expect(title).not.toContainText("that match");
  await expect(title).toContainText(all);
});

test("a link with a search opens with its table, never with all functions", async ({ page, windows }) => {
  // Each text that the table's title ever has, from the first on.
  await page.addInitScript(() => {
    const seen: string[] = [];
    Object.assign(globalThis, { seen });
    new MutationObserver(() => {
      const text = [...document.querySelectorAll(".tablebox-title > :not(label)")]
        .map((one) => one.textContent)
        .join(" ");
      if (text !== seen.at(-1)) seen.push(text);
    }).observe(document, { childList: true, subtree: true, characterData: true });
  });
  await page.goto(at(windows.after, { match: "get_random" }));
  await expect(page.locator(".tablebox-title")).toContainText("that match");
  const seen = await page.evaluate(() => (globalThis as unknown as { seen: string[] }).seen);
  expect(seen.filter((text) => text !== "" && !text.includes("that match"))).toEqual([]);
});

test("the tree says whose frames are that begin alike", async ({ page, windows }) => {
  await page.goto(at(windows.after, { pane: "tree", query: busyOnly(windows) }));
  const rows = page.getByTestId("frame-tree").getByRole("treeitem");
  await expect(rows.nth(1)).toContainText(windows.busy);
  await expect(page.getByTestId("frame-tree").locator("span.dim", { hasText: windows.busy }).first()).toBeVisible();
});

test("all numbers of a window are told in the chosen unit, and its link keeps it", async ({ page, request }) => {
  const frames = (name: string) => [
    { name: "main", module: "prog" },
    { name, module: "prog" },
  ];
  // A sample is a twentieth of a second, in a window of twenty.
  const query = await stored(request, "told", [
    { frames: frames("walk"), samples: 300 },
    { frames: frames("rest"), samples: 100 },
  ]);
  await page.goto(at(WINDOW, { ...query, tab: "functions", match: "walk" }));
  await drawn(page);
  const units = page.getByRole("group", { name: "Unit of numbers" });
  const title = page.locator(".tablebox-title");
  const self = page
    .getByRole("grid", { name: "Functions" })
    .locator(".vtable-row")
    .filter({ hasText: "walk" })
    .getByRole("gridcell")
    .nth(1);
  for (const [unit, button, head, told, found] of [
    ["time", "CPU time", "CPU time", /^15\.0\ss75\.0\s%$/, /^75\.0\s% · 15\.0\ss of CPU time, 300 samples in 1 frame/],
    ["samples", "samples", "samples", /^30075\.0\s%$/, /^75\.0\s% · 300 samples in 1 frame/],
    // A share alone would hide how much it is.
    ["share", "%", "share", /^0\.75075\.0\s%$/, /^75\.0\s% · 300 samples in 1 frame/],
    ["cores", "cores", "cores", /^0\.75075\.0\s%$/, /^75\.0\s% · 0\.750 cores, 300 samples in 1 frame/],
  ] as const) {
    await units.getByRole("button", { name: button }).click();
    await expect.poll(() => parameter(page, "unit")).toBe(unit);
    await expect(title).toContainText(head);
    await expect(self).toHaveText(told);
    await expect(page.getByTestId("found").locator(".found-text")).toHaveText(found);
  }
  await page.goBack();
  await page.reload();
  await expect(self).toHaveText(/^0\.75075\.0\s%$/);
  expect(parameter(page, "unit")).toBe("share");
});
