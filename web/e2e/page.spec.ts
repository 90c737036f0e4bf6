import type { Page } from "@playwright/test";
import { seriousInBoth } from "./axe.ts";
import { at, busyOnly, colours, comparison, expect, parameter, test } from "./stack.ts";

test("everything is accessible in both themes", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(4);
  expect(await seriousInBoth(page)).toEqual([]);
  await page.goto(comparison(windows));
  await expect(page.getByTestId("verdict")).toBeVisible();
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  expect(await seriousInBoth(page)).toEqual([]);
  await page.goto("/?view=nodes");
  await expect(page.locator(".nodes .vtable-row").first()).toBeVisible();
  expect(await seriousInBoth(page)).toEqual([]);
  const marked = `${windows.after.from + 1_000}-${windows.after.from + 2_000}`;
  await page.goto(at(windows.after, { view: "heatmap", markA: marked }));
  await expect.poll(() => colours(page, "heatmap")).toBeGreaterThan(3);
  expect(await seriousInBoth(page)).toEqual([]);
  await page.goto(at(windows.after, { view: "timeline", query: '{cpu="0"}', hit: "read", before: "50" }));
  await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(3);
  expect(await seriousInBoth(page)).toEqual([]);
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  expect(await seriousInBoth(page)).toEqual([]);
});

test("what opens on a frame is accessible in both themes", async ({ page, windows }) => {
  for (const address of [at(windows.after), comparison(windows)]) {
    await page.goto(address);
    await expect.poll(() => colours(page)).toBeGreaterThan(2);
    await page.getByTestId("flamegraph").focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
    await expect(page.getByTestId("frame-since")).toBeVisible();
    expect(await seriousInBoth(page), "the panel of a frame").toEqual([]);
    await page.keyboard.press("Shift+F10");
    await expect(page.getByRole("menu")).toBeVisible();
    expect(await seriousInBoth(page), "the menu of a frame").toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Tree", exact: true }).click();
    await page.getByRole("tree").focus();
    for (const key of ["ArrowDown", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
    await expect(page.getByRole("tree").getByRole("treeitem", { selected: true })).toBeVisible();
    expect(await seriousInBoth(page), "the tree of frames").toEqual([]);
  }
  await page.getByRole("button", { name: "Profile type: CPU time" }).click();
  // Whether agents tell waits or not: CPU time is there, and it is what nobody had to choose.
  await expect(page.getByTestId("types")).toContainText(/(only type|All types) in this range/);
  const types = page.getByRole("list", { name: "Profile types" }).getByRole("button");
  await expect(types.first()).toHaveAttribute("aria-pressed", "true");
  await expect(types.first()).toContainText("CPU time");
  expect(await seriousInBoth(page), "the list of profile types").toEqual([]);
});

test("follows the system's colours until one is chosen", async ({ page, windows }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(at(windows.after));
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.emulateMedia({ colorScheme: "light" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
  await page.getByTestId("theme").click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect.poll(() => parameter(page, "theme")).toBe("dark");
});

test("figures are as wide as each other, so that columns of them can be read down", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await expect(page.getByRole("grid", { name: "Functions" }).locator(".amount").first()).toBeVisible();
  const widths = await page.evaluate(() => {
    const styled = [...document.querySelectorAll(".amount b, .layer-cores, .figure dd, .toplist-cores, input, button")];
    const numeric = new Set(styled.map((element) => getComputedStyle(element).fontVariantNumeric));
    const widthOf = (text: string) => {
      const line = document.querySelector(".amount b")?.appendChild(document.createElement("span"));
      if (line === undefined) return Number.NaN;
      line.textContent = text;
      const { width } = line.getBoundingClientRect();
      line.remove();
      return width;
    };
    return { numeric: [...numeric], narrow: widthOf("1111111111"), wide: widthOf("0000000000") };
  });
  expect(widths.numeric).toEqual(["tabular-nums"]);
  expect(widths.narrow).toBeCloseTo(widths.wide, 1);
});

/** Pixels by which the page is wider than its window. */
const overflow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

test("fits 768, 390 and 360 pixels", async ({ page, windows }) => {
  const timeline = at(windows.after, { view: "timeline", query: '{cpu="0"}' });
  for (const address of [
    at(windows.after),
    comparison(windows),
    at(windows.after, { view: "heatmap" }),
    timeline,
    "/?view=nodes",
  ]) {
    const shown = async () => {
      if (address.includes("nodes")) await expect(page.locator(".nodes .vtable-row").first()).toBeVisible();
      else await expect.poll(() => colours(page, address === timeline ? "timeline" : "flamegraph")).toBeGreaterThan(2);
    };
    for (const width of [390, 360, 768]) {
      const isOpen = width !== 390;
      await page.setViewportSize({ width, height: 800 });
      if (isOpen) {
        // A window that is made narrower or wider: views that ask for its width are drawn with the next pictures.
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
        await shown();
        expect(await overflow(page), `${address}, made as wide as ${width}`).toBe(0);
      }
      await page.goto(address);
      await shown();
      expect(await overflow(page), `${address}, opened at ${width}`).toBe(0);
    }
  }
});

test("lists this machine's agent with its cost", async ({ page, windows }) => {
  expect(windows.after.until).toBeGreaterThan(0);
  await page.goto("/?view=nodes");
  const row = page.locator(".nodes .vtable-row.live").first();
  await expect(row).toContainText("Hz");
  await expect(row).toContainText("MiB");
  await row.getByRole("link").click();
  await expect(page.getByTestId("query")).toHaveValue(/^\{node="/);
});

test("a whole address opens as it was copied", async ({ page, windows }) => {
  const address = comparison(windows, {
    query: busyOnly(windows),
    by: "process",
    match: "/read|random/",
    layout: "flame",
    pane: "graph",
    width: "after",
    theme: "dark",
  });
  await page.goto(address);
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await expect.poll(() => new URL(page.url()).search).toBe(new URL(address, page.url()).search);
  await expect(page.getByTestId("search")).toHaveValue("/read|random/");
  await expect(page.getByRole("button", { name: "Graph", exact: true })).toHaveAttribute("aria-pressed", "true");
  await expect(page.getByRole("grid")).toHaveCount(0);
});

test("nothing but the server is spoken to, and the policy forbids more", async ({ page, windows, baseURL }) => {
  const foreign: string[] = [];
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== "data:" && origin !== new URL(baseURL ?? "").origin) foreign.push(request.url());
  });
  const answer = await page.goto(at(windows.after));
  const policy = answer?.headers()["content-security-policy"] ?? "";
  expect(policy).toMatch(/script-src 'self'(;|$)/);
  expect(policy).toMatch(/style-src 'self'(;|$)/);
  await expect.poll(() => colours(page)).toBeGreaterThan(4);
  expect(foreign).toEqual([]);
});
