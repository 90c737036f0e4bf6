import type { Locator, Page } from "@playwright/test";
import { tabTo } from "./hand.ts";
import { at, busyOnly, colours, comparison, expect, parameter, settled, test } from "./stack.ts";

test("a shared link has fixed times and opens the same view", async ({ page, context, windows, browserName }) => {
  expect(browserName).toBe("chromium");
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(`/?view=heatmap&from=now-2m&theme=dark&query=${encodeURIComponent('{cpu="0"}')}`);
  expect(windows.after.until).toBeGreaterThan(0);
  await page.getByRole("button", { name: /^Share/ }).click();
  await page.getByTestId("share-fixed").click();
  await expect(page.getByTestId("share-said")).toHaveText("Copied.");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const search = new URL(link).searchParams;
  expect(search.get("from")).toMatch(/^\d{13}$/);
  expect(Number(search.get("until")) - Number(search.get("from"))).toBe(120_000);
  const other = await context.newPage();
  await other.goto(link);
  await expect(other.getByTestId("query")).toHaveValue('{cpu="0"}');
  await expect(other.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect.poll(() => colours(other, "heatmap")).toBeGreaterThan(2);
  expect(new URL(other.url()).search).toBe(new URL(link).search);
});

test("a question mark tells all keys, Escape closes", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(4);
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard help" });
  await expect(help).toBeVisible();
  for (const title of ["Chart", "Flamegraph", "Tree of frames", "Heatmap", "Timeline"])
    await expect(help.getByRole("heading", { name: title })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(help).toBeHidden();
  await page.getByTestId("search").fill("why?");
  await page.getByTestId("search").press("?");
  await expect(help).toBeHidden();
});

test("a link to a view says with the page itself which parts the view needs", async ({ request }) => {
  const partsOf = async (view: string) => {
    const link = (await request.get(`/?view=${view}&from=now-5m`)).headers().link ?? "";
    return [...link.matchAll(/<([^>]+)>; rel=(?:modulepreload|preload; as=style)/g)].map(([, path]) => path as string);
  };
  expect(await partsOf("explore")).toEqual([]);
  const [, first = ""] = /src="(\/assets\/[^"]+\.js)"/.exec(await (await request.get("/")).text()) ?? [];
  for (const view of ["compare", "heatmap", "timeline", "threads", "nodes"]) {
    const parts = await partsOf(view);
    expect(parts.filter((part) => part.endsWith(".css"))).toHaveLength(1);
    expect(parts.some((part) => part.toLowerCase().startsWith(`/assets/${view}-`))).toBe(true);
    // What such a part imports is named, too: else the browser would know of it a round trip later.
    for (const part of parts) {
      const answer = await request.get(part);
      expect(answer.headers()["content-type"]).toContain(part.endsWith(".css") ? "text/css" : "javascript");
      const imported = [...(await answer.text()).matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)];
      const paths = imported.map(([, name]) => `/assets/${name}`);
      expect(paths.filter((path) => path !== first && !parts.includes(path))).toEqual([]);
    }
  }
});

test("a view that a link opens begins all its files with the first script", async ({ page, windows }) => {
  // The first script is held back: what was asked for by then, the document alone made the browser ask for.
  const link = (await page.request.get("/?view=threads")).headers().link ?? "";
  const parts = [...link.matchAll(/<([^>]+)>/g)].map(([, path]) => path as string);
  expect(parts.length).toBeGreaterThan(1);
  const asked = new Set<string>();
  page.on("request", (request) => asked.add(new URL(request.url()).pathname));
  const [, first = ""] = /src="(\/assets\/[^"]+\.js)"/.exec(await (await page.request.get("/")).text()) ?? [];
  let release = () => {};
  const held = new Promise<void>((done) => {
    release = done;
  });
  await page.route(`**${first}`, async (route) => {
    await held;
    await route.continue();
  });
  const opened = page.goto(at(windows.after, { view: "threads" }));
  await expect.poll(() => parts.filter((path) => !asked.has(path))).toEqual([]);
  release();
  await opened;
  await expect(page.locator("main.threads")).toBeVisible();
});

test("what a search leaves as it is, is not drawn again", async ({ page, windows }) => {
  await page.goto(at(windows.after, { match: "e", tab: "lists" }));
  await expect.poll(() => colours(page)).toBeGreaterThan(4);
  await expect(page.getByTestId("toplists").getByRole("button").first()).toBeVisible();
  // What was asked for before may come after the rest, and is drawn then.
  await expect.poll(() => colours(page, "timechart")).toBeGreaterThan(2);
  await page.waitForLoadState("networkidle");
  // What is drawn from here on, by canvas.
  await page.evaluate(() => {
    const drawn: Record<string, number> = {};
    Object.assign(window, { drawn });
    const fill = CanvasRenderingContext2D.prototype.fillRect;
    CanvasRenderingContext2D.prototype.fillRect = function (...box) {
      const name = (this.canvas as HTMLCanvasElement).dataset.testid ?? "";
      drawn[name] = (drawn[name] ?? 0) + 1;
      fill.apply(this, box);
    };
  });
  const drawn = () => page.evaluate(() => (window as unknown as { drawn: Record<string, number> }).drawn);
  const box = page.getByTestId("search");
  await box.fill("nothing-has-this-name");
  await expect(page.getByTestId("found")).toContainText("no frame matches");
  // The words may come before the picture.
  const rests = await settled(300, async () => JSON.stringify(await drawn()));
  const { flamegraph = 0, timechart = 0 } = JSON.parse(rests) as Record<string, number>;
  expect(flamegraph).toBeGreaterThan(0);
  expect(timechart).toBe(0);
  // Another letter changes no name's verdict, so that nothing is drawn at all.
  await box.press("x");
  await expect.poll(() => parameter(page, "match")).toBe("nothing-has-this-namex");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  expect((await drawn()).flamegraph).toBe(flamegraph);
});

test("Back undoes a search as a whole, also before it stands in the address", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await page.getByRole("button", { name: "Graph", exact: true }).click();
  await expect.poll(() => parameter(page, "pane")).toBe("graph");
  const box = page.getByTestId("search");
  await box.pressSequentially("read");
  await expect.poll(() => parameter(page, "match")).toBe("read");
  await page.goBack();
  await expect(box).toHaveValue("");
  await expect.poll(() => [parameter(page, "match"), parameter(page, "pane")]).toEqual([null, "graph"]);
  // In one go, as no hand is as fast.
  await box.evaluate((input: HTMLInputElement) => {
    input.value = "w";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    history.back();
  });
  await expect(box).toHaveValue("");
  await expect.poll(() => parameter(page, "pane")).toBe("graph");
  await page.goBack();
  await expect.poll(() => parameter(page, "pane")).toBeNull();
});

test("operators are completed too", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  const box = page.getByTestId("query");
  await box.click();
  await box.pressSequentially("mode!");
  await page.getByRole("option", { name: "!=", exact: true }).click();
  await expect(box).toHaveValue('mode!="');
});

test.describe("a slow answer", () => {
  test.use({ allowErrors: [/ERR_FAILED|net::/] });

  test("says so, can be cancelled and asked again", async ({ page, windows }) => {
    let hold = true;
    await page.route("**/api/v1/heatmap*", async (route) => {
      if (!hold) return route.continue();
      // Never answered: only the cancel ends it.
      await new Promise(() => {});
    });
    await page.goto(at(windows.after, { view: "heatmap" }));
    await expect(page.locator(".progress")).toContainText("heatmap");
    await page.getByTestId("cancel").click();
    const notice = page.getByRole("alert").filter({ hasText: "Cancelled: heatmap" });
    await expect(notice).toBeVisible();
    await expect(page.locator(".progress")).toBeEmpty();
    hold = false;
    await notice.getByRole("button", { name: "Try again" }).click();
    await expect.poll(() => colours(page, "heatmap")).toBeGreaterThan(3);
    await expect(notice).toBeHidden();
  });

  for (const width of [1280, 1360, 1440, 1920])
    test(`moves nothing while it is waited for, at ${width}`, async ({ page, windows }) => {
      await page.setViewportSize({ width, height: 800 });
      await page.route(/api\/v1\/(flamegraph|series|facets|diff)/, () => new Promise(() => {}));
      for (const view of ["explore", "compare"]) {
        await page.goto(at(windows.after, { view }));
        const height = () => page.locator(".header").evaluate((header) => header.getBoundingClientRect().height);
        const before = await height();
        await expect(page.locator(".progress")).not.toBeEmpty();
        expect(await height()).toBe(before);
        expect(before).toBeLessThan(50);
        await expect(page.getByTestId("cancel")).toBeInViewport({ ratio: 1 });
      }
    });

  test("a server that is gone is an error with what to do", async ({ page, windows }) => {
    await page.route(/api\/v1\/(flamegraph|series)/, (route) => route.abort());
    await page.goto(at(windows.after));
    const notice = page.getByRole("alert").filter({ hasText: "does not answer" });
    await expect(notice).toContainText("Check that stakeout-server runs");
    // Said once, not by each list too.
    await expect(page.getByText("does not answer")).toHaveCount(1);
    await page.unroute(/api\/v1\/(flamegraph|series)/);
    await notice.getByRole("button", { name: "Try again" }).click();
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
  });
});

test.describe("parts of the page that come when they are wanted", () => {
  test.use({ allowErrors: [/ERR_FAILED|net::|status of 404|Failed to fetch dynamically imported module/] });

  const assets = (page: Page) =>
    page.evaluate(() =>
      performance
        .getEntriesByType("resource")
        .map(({ name }) => new URL(name).pathname)
        .filter((path) => path.startsWith("/assets/") && path.endsWith(".js")),
    );

  test("the first picture takes one script, a view its own", async ({ page, windows }) => {
    await page.goto(at(windows.after));
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    const first = await page.evaluate(() => {
      const entries = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
      // Whichever of the chart and the graph comes first: what a graph needs follows it, with the chart or without.
      const answers = entries.filter(({ name }) => /api\/v1\/(series|facets|flamegraph)/.test(name));
      // An address that rests for two seconds is kept by files of its own, however slow the server is.
      const answered = Math.min(2_000, ...answers.map((one) => one.responseEnd));
      const scripts = entries.filter(({ name, startTime }) => /\/assets\/.*\.js$/.test(name) && startTime < answered);
      return scripts.map(({ name }) => name);
    });
    expect(first).toHaveLength(1);
    // Markers, and what they need, come to a chart that is there already.
    await expect.poll(async () => (await assets(page)).some((path) => path.includes("/Markers-"))).toBe(true);
    await page.getByRole("link", { name: "Nodes" }).click();
    await expect(page.locator(".nodes .vtable-row").first()).toBeVisible();
    const part = (await assets(page)).find((path) => path.includes("/Nodes-"));
    const answer = await page.request.get(part as string);
    expect(answer.headers()["cache-control"]).toContain("immutable");
  });

  test("what changes a tree comes when a hand is near the graph, or beside the first script", async ({
    page,
    windows,
  }) => {
    const changing = async () => (await assets(page)).filter((path) => path.includes("/transform-"));
    await page.goto(at(windows.after));
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    expect(await changing()).toEqual([]);
    await page.getByTestId("flamegraph").hover();
    await expect.poll(changing).toHaveLength(1);
    // A link that changes the tree: the file is asked for while the server is, and the picture waits for both.
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.route("**/api/v1/flamegraph*", async (route) => {
      await expect.poll(() => asked.some((path) => path.includes("/transform-"))).toBe(true);
      await route.continue();
    });
    await page.goto(at(windows.after, { transform: "invert" }));
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    await expect(page.getByTestId("chips")).toContainText("inverted");
  });

  test("without what changes a tree, the graph stays as it was and says so", async ({ page, windows }) => {
    await page.route("**/assets/transform-*.js", (route) => route.fulfill({ status: 404, body: "" }));
    await page.goto(at(windows.after));
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    await page.getByTestId("flamegraph").focus();
    await page.keyboard.press("i");
    const notice = page.getByRole("alert").filter({ hasText: "could not be loaded" });
    await expect(notice).toBeVisible();
    await expect.poll(() => parameter(page, "transform")).toBe("invert");
    expect(await colours(page)).toBeGreaterThan(4);
    await expect(page.locator(".progress")).toBeEmpty();
    await page.unroute("**/assets/transform-*.js");
    await notice.getByRole("button", { name: "Reload the page" }).click();
    await expect(page.getByTestId("chips")).toContainText("inverted");
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    await expect(notice).toBeHidden();
  });

  test("one that is gone says so, and a reload opens the same view", async ({ page, windows }) => {
    // What a server answers that was upgraded: it has other files now.
    await page.route("**/assets/Heatmap-*.js", (route) => route.fulfill({ status: 404, body: "" }));
    await page.goto(at(windows.after, { theme: "dark" }));
    await page.getByRole("link", { name: "Heatmap" }).click();
    const notice = page.getByRole("alert").filter({ hasText: "could not be loaded" });
    await expect(notice).toBeVisible();
    await expect.poll(() => parameter(page, "view")).toBe("heatmap");
    await notice.getByRole("button", { name: "Try again" }).click();
    await expect(notice).toBeVisible();
    await page.unroute("**/assets/Heatmap-*.js");
    await notice.getByRole("button", { name: "Reload the page" }).click();
    await expect.poll(() => colours(page, "heatmap")).toBeGreaterThan(3);
    await expect.poll(() => [parameter(page, "view"), parameter(page, "theme")]).toEqual(["heatmap", "dark"]);
  });
});

test("the strip of quality says whether agents are silent", async ({ page, windows }) => {
  const figures = page.locator(".quality .figure");
  // Agents are asked for once a page; beside much else this one may be late just then.
  await expect(async () => {
    await page.goto(at(windows.after, { more: "data" }));
    await expect(figures.filter({ hasText: "agents not reporting" })).toContainText("none", { timeout: 5_000 });
  }).toPass();
  for (const name of ["samples", "truncated stacks", "unsymbolized", "lost", "coverage gap"])
    await expect(figures.filter({ hasText: name }).first()).toBeVisible();
});

test("paper is light and has no controls", async ({ page, windows }) => {
  await page.goto(at(windows.after, { theme: "dark" }));
  await expect.poll(() => colours(page)).toBeGreaterThan(4);
  await page.emulateMedia({ media: "print" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
  await expect(page.getByRole("button", { name: /^Share/ })).toBeHidden();
  await expect(page.getByTestId("flamegraph")).toBeVisible();
  await page.emulateMedia({ media: "screen" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect.poll(() => parameter(page, "theme")).toBe("dark");
});

test("a window and a comparison are a sheet each", async ({ page, windows }) => {
  for (const address of [at(windows.after), comparison(windows), comparison(windows, { graphs: "beside" })]) {
    await page.goto(address);
    await expect(page.locator(".flame-scroll").first()).toBeVisible();
    await page.waitForLoadState("networkidle");
    const sheets = (await page.pdf({ preferCSSPageSize: true, printBackground: true })).toString("latin1");
    expect(sheets.match(/\/Type \/Page\b/g), address).toHaveLength(1);
  }
});

test("what is printed is drawn for the width of the paper, and for the screen again behind it", async ({
  page,
  windows,
}) => {
  await page.goto(at(windows.after, { view: "compare" }));
  await expect.poll(() => colours(page)).toBeGreaterThan(1);
  await expect(page.getByTestId("timechart")).toBeVisible();
  interface Widths {
    page: number;
    graph: number[];
    chart: number[];
  }
  const printed: Widths[] = [];
  await page.exposeFunction("told", (one: Widths) => printed.push(one));
  await page.evaluate(() => {
    const widthOf = (selector: string) => document.querySelector(selector)?.clientWidth ?? 0;
    const measure = () => ({
      page: widthOf("#app"),
      graph: [widthOf(".flame-scroll"), widthOf("[data-testid=flamegraph]")],
      chart: [widthOf(".timechart"), widthOf("[data-testid=timechart]")],
    });
    const told = (globalThis as unknown as { told: (one: Widths) => void }).told;
    // Behind the page's own listeners, as the printer comes: graph and chart are there and have theirs.
    addEventListener("beforeprint", () => told(measure()));
    Object.assign(globalThis, { measure });
  });
  const widths = () => page.evaluate(() => (globalThis as unknown as { measure: () => Widths }).measure());
  const screen = await widths();
  await page.pdf();
  await expect.poll(() => printed.length).toBe(1);
  const [paper] = printed;
  expect(paper?.page).toBeLessThan(1060);
  expect(paper?.graph[1]).toBe(paper?.graph[0]);
  expect(paper?.chart[1]).toBe(paper?.chart[0]);
  expect(paper?.chart[0]).toBeLessThan(screen.chart[0] as number);
  await expect.poll(widths).toEqual(screen);
});

test("from the selector to the frame that grew, without a pointer", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(4);
  await tabTo(page, page.getByTestId("query"));
  await page.keyboard.type(busyOnly(windows));
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "query")).toBe(busyOnly(windows));
  await tabTo(page, page.getByRole("button", { name: "Compare with previous window" }));
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  await expect(page.getByTestId("verdict")).toBeVisible();
  await tabTo(page, page.getByTestId("flamegraph"));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await expect(page.getByTestId("selected-frame")).toContainText(/before .*after/);
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "focus")).not.toBeNull();
  await page.goBack();
  await expect.poll(() => parameter(page, "focus")).toBeNull();
});

test("the keys / and ? work from everywhere but a field of text", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(4);
  const help = page.getByRole("dialog", { name: "Keyboard help" });
  const capacity = page.getByRole("checkbox", { name: "Scale to capacity" });
  await capacity.click();
  await expect(capacity).toBeFocused();
  await page.keyboard.press("?");
  await expect(help).toBeVisible();
  await page.keyboard.press("Escape");
  await page.getByTestId("apart").click();
  await page.keyboard.press("/");
  await expect(page.getByTestId("search")).toBeFocused();
  await expect(page.getByTestId("search")).toHaveValue("");
  // Nor does a list take them.
  await page.getByTestId("by").focus();
  await page.keyboard.press("?");
  await expect(help).toBeVisible();
  await page.keyboard.press("Escape");
  await page.getByTestId("by").focus();
  await page.keyboard.press("/");
  await expect(page.getByTestId("search")).toBeFocused();
});

test("a field of text keeps the keys / and ?", async ({ page, windows }) => {
  const keeps = async (field: Locator) => {
    await field.fill("");
    await field.focus();
    for (const key of ["a", "/", "?"]) await page.keyboard.press(key);
    await expect(field).toHaveValue("a/?");
    await expect(field).toBeFocused();
    await expect(page.getByRole("dialog", { name: "Keyboard help" })).toHaveCount(0);
  };
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(4);
  await keeps(page.getByTestId("query"));
  await keeps(page.getByTestId("search"));
  await page.keyboard.press("Control+k");
  await keeps(page.getByTestId("palette"));
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Saved views" }).click();
  await keeps(page.getByTestId("view-name"));
  await page.goto(comparison(windows, { more: "sides" }));
  await keeps(page.getByRole("combobox", { name: "Selector of A" }));
  await page.goto("/?view=nodes");
  await keeps(page.getByTestId("find-agents"));
  // Half a regular expression is a fault that is said, and no key of the page.
  await page.goto(at(windows.after, { view: "timeline", query: '{cpu="0"}' }));
  await keeps(page.getByTestId("hit"));
});

test.describe("what can't be read", () => {
  test.use({ allowErrors: [/400 \(Bad Request\)/] });

  test("a word in the selector is understood, and what can't be read is told beside it", async ({ page, windows }) => {
    await page.goto(at(windows.after));
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
    const box = page.getByTestId("query");
    const graph = page.getByTestId("flamegraph");
    const fault = page.getByTestId("selector-fault");
    await box.fill("nobody-is-called-so");
    await box.press("Enter");
    await expect(fault).toContainText("Nothing in this time is called “nobody-is-called-so”");
    for (const text of ['{process="', '{colour="red"}', '{process=~"("}']) {
      await box.fill(text);
      await box.press("Enter");
      await expect(fault).toBeVisible();
      // The page shows what it did.
      await expect(graph).toBeVisible();
      expect(parameter(page, "query")).toBeNull();
    }
    await expect(page.getByText("The selector can't be read.")).toHaveCount(0);
    // A part of its name, by what is offered; and its whole name, by Enter alone.
    await box.fill(windows.busy.slice(0, -1));
    const offered = page.getByRole("option", { name: `process="${windows.busy}"`, exact: true });
    await offered.click();
    await expect.poll(() => parameter(page, "query")).toBe(busyOnly(windows));
    await box.fill("");
    await box.press("Enter");
    await expect.poll(() => parameter(page, "query")).toBeNull();
    await box.fill(windows.busy);
    await box.press("Enter");
    await expect
      .poll(() => parameter(page, "query"))
      .toMatch(new RegExp(`^\\{(service|process)="${windows.busy}"\\}$`));
    await expect(fault).toBeHidden();
  });
});

test("an address that the page does not have says so", async ({ page }) => {
  await page.goto("/?view=nothing");
  await expect(page.getByText("There is no view “nothing” here.")).toBeVisible();
  await page.getByRole("link", { name: "Nodes" }).click();
  await expect(page.getByRole("grid").or(page.getByRole("table")).first()).toBeVisible();
});

test("who adds a machine is asked for an address that it can reach", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await page.getByTitle("Add a machine").click();
  const line = page.locator(".install-line code");
  await expect(line).toHaveCount(1);
  await expect(line).toContainText("127.0.0.1");
  const address = page.getByTestId("install-address");
  await address.fill("not an address");
  await expect(page.getByRole("alert")).toContainText("no address of another machine");
  await address.fill("10.0.0.7");
  await expect(line.nth(1)).toContainText(/http:\/\/10\.0\.0\.7:\d+\/install\.sh/);
});
