/**
 * Views, what opens on them (menus, the palette, dialogs) and the states that they can be in have no serious fault for
 * a screen reader or weak sight; who asks the system for more contrast gets it.
 */
import { createRequire } from "node:module";
import type { Locator, Page } from "@playwright/test";
import { OF_COLOURS, serious, seriousInBoth, turn } from "./axe.ts";
import { kubeletJump, networkStalls } from "./incidents.ts";
import { course, drawn, stored, WINDOW } from "./known.ts";
import { at, colours, comparison, expect, held, pixels, test } from "./stack.ts";
import { warn } from "./warned.ts";
import { waitCovered } from "./windows.ts";

const SIZES = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
] as const;

/** On a phone what has no room in the bar stands in one menu. */
async function more(page: Page): Promise<void> {
  if ((page.viewportSize()?.width ?? 0) < 560) await page.getByRole("button", { name: "More", exact: true }).click();
}

/** What is there once it is open. */
const OPENERS: Record<string, (page: Page) => Promise<void>> = {
  palette: async (page) => {
    await page.keyboard.press("Control+k");
    await page.getByTestId("palette").fill("saved");
    await expect(page.getByRole("dialog", { name: "Go to" }).getByRole("option").first()).toBeVisible();
  },
  "share menu": async (page) => {
    const isPhone = page.viewportSize()?.width === 390;
    if (isPhone) await more(page);
    else await page.getByRole("button", { name: /^Share/ }).click();
    await expect(page.getByTestId("share-fixed")).toBeVisible();
    // There both stand in one menu.
    if (isPhone) await expect(page.locator(".install-line").first()).toBeVisible();
  },
  "saved views": async (page) => {
    await more(page);
    await page.getByRole("button", { name: "Saved views" }).click();
    await expect(page.getByRole("dialog", { name: "Saved views" })).toBeVisible();
  },
  "source links": async (page) => {
    await page.keyboard.press("Control+k");
    await page.getByTestId("palette").fill("source links");
    const options = page.getByRole("dialog", { name: "Go to" }).getByRole("option");
    await options.filter({ hasText: "Templates of source links" }).click();
    await expect(page.getByTestId("source-templates")).toBeVisible();
  },
  "add machine": async (page) => {
    await page.getByTitle("Add a machine", { exact: true }).click();
    await expect(page.locator(".install-line").first()).toBeVisible();
  },
  "time range": async (page) => {
    await page.getByTitle("Choose the time range", { exact: true }).click();
    await expect(page.getByTestId("range-field")).toBeVisible();
  },
  "download menu": async (page) => {
    await page.getByRole("button", { name: /^Download/ }).click();
    await expect(page.locator(".menu-list").getByRole("button", { name: /^HTML file/ })).toBeVisible();
  },
  "a row over time": async (page) => {
    await page.getByRole("grid", { name: /^Threads' time by/ }).focus();
    for (const key of ["Home", "Enter"]) await page.keyboard.press(key);
    await expect(page.getByTestId("narrow-row")).toBeVisible();
    await page.waitForLoadState("networkidle");
  },
  "sibling menu": async (page) => {
    await page
      .getByRole("navigation", { name: "What is selected" })
      .getByRole("button", { name: /^service / })
      .click();
    await expect(page.locator(".siblings [aria-pressed=true]")).toHaveCount(1);
  },
  "value menu": async (page) => {
    await page
      .getByTestId("layers")
      .getByRole("button", { name: /^What can be done with / })
      .first()
      .click();
    await expect(page.getByRole("menuitem", { name: "Compare with the rest" })).toBeVisible();
  },
  "frame menu": async (page) => {
    await page.getByTestId("flamegraph").focus();
    for (const key of ["ArrowDown", "ArrowDown", "Shift+F10"]) await page.keyboard.press(key);
    await expect(page.getByRole("menu", { name: /^Frame / })).toBeVisible();
  },
};
/** What a phone has instead of a bar, and of what stands beside the graph. */
const ON_PHONES: Record<string, (page: Page) => Promise<void>> = {
  views: async (page) => {
    await page.getByTitle("Views", { exact: true }).click();
    await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  },
  table: async (page) => {
    const tabs = page.getByRole("tablist", { name: "Beside the graph" });
    await tabs.getByRole("tab").nth(1).click();
    await expect(page.getByRole("tabpanel")).toBeVisible();
  },
};
const EVERYWHERE = ["palette", "share menu", "saved views", "source links", "add machine"];
const OF_GRAPHS = [...EVERYWHERE, "time range", "download menu", "sibling menu", "frame menu"];
const OPEN_ON: Record<string, readonly string[]> = {
  explore: [...OF_GRAPHS, "value menu"],
  compare: [...OF_GRAPHS, "value menu"],
  heatmap: OF_GRAPHS,
  timeline: OF_GRAPHS,
  threads: [...EVERYWHERE, "time range", "a row over time"],
  nodes: EVERYWHERE,
};
/** What is folded on a phone is looked at as well. */
const UNFOLDED = "chart,data,filter,graph,key,sides";
const unfoldedOn = (width: number): Record<string, string> => (width < 560 ? { more: UNFOLDED } : {});

test("no rule about colours is left out in the second theme", () => {
  const axe = createRequire(import.meta.url)("axe-core") as { getRules: (tags: string[]) => { ruleId: string }[] };
  const known = axe.getRules(["cat.color"]).map(({ ruleId }) => ruleId);
  // Axe runs that one only where it is told to: it is of WCAG's level AAA.
  expect(known.filter((rule) => rule !== "color-contrast-enhanced")).toEqual(OF_COLOURS);
});

for (const size of SIZES)
  for (const [view, names] of Object.entries(OPEN_ON))
    test(`${view} in both themes, ${size.width} wide: ${names.join(", ")}`, async ({ page, request, windows }) => {
      const isPhone = size.width < 560;
      await page.setViewportSize(size);
      const { node, range } = await kubeletJump(request, `access-${view}-${size.width}`);
      const query = `{node="${node}",service="kubelet"}`;
      const middle = (range.from + range.until) / 2;
      const both = { before: { ...range, until: middle }, after: { ...range, from: middle } };
      const chosen = { query, by: "thread", ...unfoldedOn(size.width) };
      if (view === "timeline") {
        const stalls = await networkStalls(request, `access-${size.width}`);
        const lane = `{node="${stalls.node}",service="ksoftirqd",cpu="11"}`;
        await page.goto(at(stalls.range, { view, ...chosen, query: lane, hit: "net_rx_action", before: "100" }));
      } else if (view === "compare") await page.goto(comparison({ busy: "", ...both }, chosen));
      else if (view === "heatmap") await page.goto(at(range, { ...chosen, view, markA: `${middle}-${range.until}` }));
      // Waits are told by the machine's own agent alone.
      else if (view === "threads") await page.goto(at(windows.after, { view, by: "process" }));
      else await page.goto(view === "nodes" ? "/?view=nodes" : at(range, chosen));
      if (view === "nodes") await expect(page.locator(".nodes .vtable-row").first()).toBeVisible();
      else if (view === "threads") {
        await expect(page.locator(".thread-bar").first()).toBeVisible();
        await expect(page.getByTestId("wait-chips")).toBeVisible();
      } else await expect.poll(() => colours(page)).toBeGreaterThan(2);
      await page.waitForLoadState("networkidle");
      expect(await seriousInBoth(page), "as it opens").toEqual([]);
      for (const name of names) {
        if (isPhone && name === "add machine") continue;
        await OPENERS[name]?.(page);
        expect(await seriousInBoth(page), name).toEqual([]);
        await page.keyboard.press("Escape");
      }
      if (!isPhone) return;
      for (const [name, open] of Object.entries(ON_PHONES)) {
        if (name === "table" && (view === "nodes" || view === "threads")) continue;
        await open(page);
        expect(await seriousInBoth(page), name).toEqual([]);
        await page.keyboard.press("Escape");
      }
    });

/** Of a view that has no samples, or no agents. */
const NOBODY = '{service="nobody-has-this",cpu="0"}';
const EMPTY: Record<string, string> = {
  explore: at(WINDOW, { query: NOBODY }),
  compare: comparison(
    { busy: "", before: { from: WINDOW.from - 60_000, until: WINDOW.from }, after: WINDOW },
    { query: NOBODY },
  ),
  heatmap: at(WINDOW, { view: "heatmap", query: NOBODY }),
  timeline: at(WINDOW, { view: "timeline", query: NOBODY }),
  threads: at(WINDOW, { view: "threads", query: NOBODY }),
  nodes: "/?view=nodes&find=nobody-has-this",
};

interface State {
  /** Before the page is opened. */
  before?: (page: Page) => Promise<unknown>;
  /** Until the state is there. */
  there: (page: Page) => Promise<unknown>;
}

const STATES: Record<string, State> = {
  empty: {
    there: async (page) => {
      await expect(page.locator(".notice.empty, .vtable-empty").first()).toBeVisible();
      await page.waitForLoadState("networkidle");
    },
  },
  loading: {
    before: (page) => page.route("**/api/v1/**", () => {}),
    there: async (page) => {
      await expect(page.getByTestId("cancel")).toBeVisible();
      await expect(page.locator(".waiting > p").first()).toBeVisible();
      // Words fade in a moment later.
      for (const words of await page.locator(".waiting > p").all()) await expect(words).toHaveCSS("opacity", "1");
    },
  },
  error: {
    before: (page) =>
      page.route("**/api/v1/**", (route) =>
        route.fulfill({
          status: 503,
          json: { error: { code: "overloaded", message: "all turns are taken", hint: "ask again in a moment" } },
        }),
      ),
    there: async (page) => {
      await expect(page.getByRole("alert").first()).toContainText("all turns are taken");
      await page.waitForLoadState("networkidle");
    },
  },
};

test.describe("states", () => {
  // What is refused the browser tells as an error of its own.
  test.use({ allowErrors: [/503/] });

  for (const size of SIZES)
    for (const [state, { before, there }] of Object.entries(STATES))
      test(`${state} views in both themes, ${size.width} wide`, async ({ page }) => {
        await page.setViewportSize(size);
        await before?.(page);
        for (const [view, address] of Object.entries(EMPTY)) {
          await page.goto(`${address}&${new URLSearchParams(unfoldedOn(size.width))}`);
          await there(page);
          expect(await seriousInBoth(page), view).toEqual([]);
        }
        // Answers that are still on their way when the test ends are nobody's.
        await page.unrouteAll({ behavior: "ignoreErrors" });
      });
});

for (const size of SIZES)
  test(`three warnings and change points in both themes, ${size.width} wide`, async ({ page, request, windows }) => {
    await page.setViewportSize(size);
    // Seconds that the agent watched: it started in the middle of them.
    const from = windows.after.until;
    const range = { from, until: from + 18_000 };
    await waitCovered(request, range.until);
    const frames = [{ name: "main" }, { name: "walk" }];
    const seconds = Array.from({ length: 18 }, (_, i) => ({ frames, samples: i < 9 ? 0 : 16 }));
    const started = await course(request, `access-started-${size.width}`, from, seconds);
    await page.goto(at(range, { ...started, ...unfoldedOn(size.width) }));
    await page.getByRole("button", { name: /^1 change point/ }).click();
    await expect(page.getByTestId("change-points").getByRole("button")).toBeVisible();
    expect(await seriousInBoth(page), "change points").toEqual([]);

    const steady = await course(
      request,
      `access-steady-${size.width}`,
      from,
      seconds.map(() => ({ frames, samples: 16 })),
    );
    const sides = { before: { from, until: from + 9_000 }, after: { from: from + 9_000, until: from + 18_000 } };
    const chosen = { ...steady, more: size.width < 560 ? UNFOLDED : "data" };
    await warn(page);
    for (const address of [at(range, chosen), comparison({ busy: "", ...sides }, chosen)]) {
      await page.goto(address);
      await expect.poll(() => colours(page)).toBeGreaterThan(1);
      await expect(page.getByTestId("fold-data")).toHaveAccessibleName(/^Data: check \(3\)/);
      await expect(page.locator(".quality").first()).toBeVisible();
      await page.waitForLoadState("networkidle");
      expect(await seriousInBoth(page), address).toEqual([]);
    }
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

/** Contrast, as WCAG 2 defines it, of a colour of an element as the browser computed it, on what lies behind it. */
function contrastOf(element: Locator, of: "color" | "border-top-color" | "outline-color"): Promise<number> {
  return element.evaluate((one, property) => {
    const numbers = (colour: string) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const groundOf = (at: Element | null): string => {
      if (at === null) return "rgb(255, 255, 255)";
      const ground = getComputedStyle(at).backgroundColor;
      return numbers(ground)[3] === 0 ? groundOf(at.parentElement) : ground;
    };
    const light = (colour: string) => {
      const [r = 0, g = 0, b = 0] = numbers(colour).map((part) => {
        const value = part / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    // A line stands against what surrounds its box.
    const ground = light(groundOf(property === "color" ? one : one.parentElement));
    const own = light(getComputedStyle(one).getPropertyValue(property));
    return (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
  }, of);
}

test("more contrast, where the system asks for it, in both themes", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await page.waitForLoadState("networkidle");
  const dim = page.locator(".chart .figures");
  const line = page.locator(".card.graph");
  const skip = page.getByRole("button", { name: "Skip to the frames" });
  for (let themes = 0; themes < 2; themes++) {
    await page.emulateMedia({ contrast: "no-preference" });
    const usual = { dim: await contrastOf(dim, "color"), line: await contrastOf(line, "border-top-color") };
    expect(usual.dim).toBeGreaterThanOrEqual(4.5);
    expect(usual.line).toBeLessThan(3);
    await page.emulateMedia({ contrast: "more" });
    expect(await contrastOf(dim, "color")).toBeGreaterThanOrEqual(10);
    expect(await contrastOf(line, "border-top-color")).toBeGreaterThanOrEqual(4.5);
    // What is drawn follows at once: lines of the chart have the colour that the style gives them now.
    const grid = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--grid"));
    const drawn = Number.parseInt(grid.trim().slice(1), 16);
    await expect.poll(async () => (await pixels(page, "timechart")).has(drawn)).toBe(true);
    await page.locator(".header .brand").focus();
    await page.keyboard.press("Shift+Tab");
    await expect(skip).toBeFocused();
    await expect(skip).toHaveCSS("outline-width", "3px");
    expect(await contrastOf(skip, "outline-color")).toBeGreaterThanOrEqual(10);
    expect(await serious(page, themes === 0 ? undefined : OF_COLOURS), `of ${themes + 1} themes`).toEqual([]);
    await turn(page);
  }
  await page.goto(comparison(windows, { more: "data,key,sides" }));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await page.waitForLoadState("networkidle");
  expect(await seriousInBoth(page), "a comparison").toEqual([]);
});

test("colours that the system forces, in both themes", async ({ page, windows }) => {
  await page.emulateMedia({ colorScheme: "light", forcedColors: "active" });
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await page.waitForLoadState("networkidle");
  const chosen = page.getByRole("group", { name: "Draw" }).getByRole("button", { name: "Stacked" });
  const swatches = page.getByTestId("layers").locator(".swatch");
  for (let themes = 0; themes < 2; themes++) {
    // What is chosen is told by more than a ground, which all have alike; a swatch keeps the colour that it stands for.
    await expect(chosen).toHaveCSS("outline-width", "2px");
    const own = await swatches
      .first()
      .evaluate((one) => [getComputedStyle(one).backgroundColor, getComputedStyle(document.body).backgroundColor]);
    expect(own[0]).not.toBe(own[1]);
    expect(await serious(page, themes === 0 ? undefined : OF_COLOURS), `of ${themes + 1} themes`).toEqual([]);
    await turn(page);
  }
});

/** Animations without an end that run now, also of what stands before an element. */
const moving = (page: Page) =>
  page.evaluate(() => {
    const times = document.getAnimations().map(({ effect }) => effect?.getTiming().iterations);
    return times.filter((one) => one === Number.POSITIVE_INFINITY).length;
  });

/** How many different pictures the graph shows behind keys, from the second one on. */
const glided = (page: Page, keys: readonly string[]) =>
  page.getByTestId("flamegraph").evaluate(async (element, pressed) => {
    const canvas = element as HTMLCanvasElement;
    const next = () => new Promise((done) => requestAnimationFrame(done));
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    const seen = new Set<number>();
    for (const key of pressed) canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    for (let i = 0; i < 2; i++) await next();
    for (const end = performance.now() + 400; performance.now() < end; await next()) {
      copy?.drawImage(canvas, 0, 0);
      let sum = 0;
      for (const byte of copy?.getImageData(0, 0, canvas.width, canvas.height).data ?? [])
        sum = (Math.imul(sum, 31) + byte) | 0;
      seen.add(sum);
    }
    return seen.size;
  }, keys);

test("less motion, where the system asks for it", async ({ page, request }) => {
  const query = await stored(
    request,
    "motionless",
    ["a", "b", "c", "d"].map((name) => ({ frames: [{ name: "main" }, { name }], samples: 10 })),
  );
  const release = await held(page, "**/api/v1/**");
  await page.goto(at(WINDOW, query));
  await expect(page.getByTestId("cancel")).toBeVisible();
  expect(await moving(page)).toBeGreaterThan(0);
  await page.emulateMedia({ reducedMotion: "reduce" });
  await expect.poll(() => moving(page)).toBe(0);
  release();
  await drawn(page);
  // A zoom by keys, given up before the address has it: what was there before is there at once.
  await page.getByTestId("flamegraph").focus();
  expect(await glided(page, ["+", "+", "+", "Escape"])).toBe(1);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});
