/**
 * What hands wait for. In: `STAKEOUT_URL`. Out: one JSON object a line into `STAKEOUT_BENCH_OUT`, milliseconds: the
 * longest task in the table of a fleet and of opening one of many markers, and the time from each control to the next
 * paint, beside a large tree.
 */
import { expect, type Page, test } from "@playwright/test";
import { fleet } from "../e2e/fleet.ts";
import { ingest, TAKEN, tell, within } from "./shared.ts";
import { stacksOf } from "./synthetic.ts";
import { longest, watchTasks } from "./tasks.ts";

const FRAMES = Number(process.env.STAKEOUT_BENCH_CONTROLS ?? "100000");
const SERVICE = "bench-controls";
/** Each kind of control that is there many times, as a value's menu is, is tried so often. */
const OF_A_KIND = 2;

for (const count of [1_000, 10_000])
  test(`a fleet of ${count}`, async ({ page }) => {
    const body = JSON.stringify({ nodes: fleet(count) });
    await page.route("**/api/v1/nodes", (route) => route.fulfill({ contentType: "application/json", body }));
    await watchTasks(page);
    await page.goto("/?view=nodes");
    const table = page.getByRole("grid", { name: "Table of agents" });
    await expect(table).toHaveAttribute("aria-rowcount", String(count + 1));
    const find = page.getByTestId("find-agents");
    const head = page.getByRole("columnheader", { name: /^Node/ });
    const acts: Record<string, (() => Promise<unknown>)[]> = {
      search: ["node-9", "node-77", "rack1", "node-5", ""].map((text) => () => find.fill(text)),
      sort: [1, 2, 3, 4].map(() => () => head.getByRole("button").click()),
      filter: ["lost", "", "any", ""].map((trouble) => () => page.getByTestId("agent-trouble").selectOption(trouble)),
      scroll: [0.3, 0.9, 0.1, 0.6].map(
        (part) => () => table.evaluate((box, to) => box.scrollTo(0, box.scrollHeight * to), part),
      ),
      // What comes every five seconds is the same work again.
      refresh: [0, 1, 2].map(() => () => page.waitForResponse("**/api/v1/nodes")),
    };
    const figures: Record<string, number> = {};
    for (const [name, turns] of Object.entries(acts)) figures[name] = await longest(page, turns);
    tell({ what: "fleet", nodes: count, ...figures });
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

test("ten thousand markers", async ({ page, request }) => {
  await ingest(request, "bench-markers", stacksOf(100));
  const markers = Array.from({ length: 10_000 }, (_, i) => ({
    ...{ id: `m${i}`, kind: i % 9 === 0 ? "version" : "note", time: TAKEN + ((i * 7919) % 55_000), text: "" },
    ...{ title: `marker ${i}`, labels: { service: "s" } },
  }));
  const answer = { complete: true, markers, older: [], uncounted: [] };
  await page.route("**/api/v1/markers?*", (route) => route.fulfill({ json: answer }));
  await watchTasks(page);
  await page.goto(within({ query: '{service="bench-markers"}' }));
  const signs = page.getByTestId("markers").first().locator(".marker");
  await expect(signs.first()).toBeVisible();
  const opening = [2, 3, 4].map((sign) => async () => {
    await signs.nth(sign).click();
    await expect(page.getByTestId("marker-panel")).toBeVisible();
    await page.keyboard.press("Escape");
  });
  tell({ what: "markers", open: await longest(page, opening) });
});

/** What hands may use now, one of each kind or two: where it is among all, and what it is called. */
async function controlsOf(page: Page): Promise<{ at: number; name: string; kind: string }[]> {
  return page.evaluate(
    ([ofAKind, controls]) => {
      const seen = new Map<string, number>();
      const all = [...document.querySelectorAll<HTMLElement>(controls)];
      return all.flatMap((one, at) => {
        const { width, height, top } = one.getBoundingClientRect();
        const isUsable =
          width > 0 && height > 0 && top < innerHeight && !one.matches(":disabled, [aria-disabled=true]");
        if (!isUsable || !one.checkVisibility()) return [];
        const said = one.getAttribute("aria-label") ?? one.title ?? "";
        const name = (said || one.textContent || one.tagName).replace(/\s+/g, " ").trim().slice(0, 60);
        // Rows of lists have a class, and controls of their own a name.
        const kind = one.className === "button" || one.className === "" ? name : `${one.tagName} ${one.className}`;
        const times = seen.get(kind) ?? 0;
        seen.set(kind, times + 1);
        if (times >= ofAKind) return [];
        const type = one instanceof HTMLInputElement ? one.type : one.tagName.toLowerCase();
        return [{ at, name, kind: type }];
      });
    },
    [OF_A_KIND, CONTROLS] as const,
  );
}

const CONTROLS = "button, select, summary, input, [role=tab], [role=slider]";

/** The longest interaction since the last call. */
const worst = (page: Page) =>
  page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 250)));
    const { interactions } = window as unknown as { interactions: number[] };
    return Math.max(0, ...interactions.splice(0));
  });

async function use(page: Page, { at, kind }: { at: number; kind: string }): Promise<void> {
  const control = page.locator(CONTROLS).nth(at);
  if (kind === "select") {
    await control.focus();
    await page.keyboard.press("ArrowDown");
  } else if (kind === "range") {
    await control.focus();
    await page.keyboard.press("ArrowRight");
  } else if (kind === "text" || kind === "search") {
    await control.click();
    await page.keyboard.type("typ", { delay: 60 });
  } else {
    await control.click({ timeout: 5_000 });
  }
}

/** What hands do on the frames themselves. */
const ON_FRAMES: Record<string, (page: Page, x: number, y: number) => Promise<unknown>> = {
  "select a frame": (page, x, y) => page.mouse.click(x, y),
  "zoom into a frame": (page, x, y) => page.mouse.dblclick(x, y),
  "a frame's menu": (page, x, y) => page.mouse.click(x, y, { button: "right" }),
  "walk by keys": async (page, x, y) => {
    await page.mouse.click(x, y);
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter", "Backspace"]) await page.keyboard.press(key);
  },
  palette: async (page) => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("type1", { delay: 60 });
  },
};

test("every control", async ({ page, request }) => {
  const stacks = stacksOf(FRAMES);
  await ingest(request, SERVICE, stacks, TAKEN);
  await ingest(request, SERVICE, stacks, TAKEN + 30_000);
  await page.addInitScript(() => {
    const interactions: number[] = [];
    Object.assign(window, { interactions });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as (PerformanceEntry & { interactionId: number })[])
        if (entry.interactionId > 0) interactions.push(entry.duration);
    }).observe({ type: "event", durationThreshold: 16 } as PerformanceObserverInit);
  });
  const query = `{service="${SERVICE}"}`;
  const views = {
    explore: within({ query }),
    compare: `/?${new URLSearchParams({
      ...{ view: "compare", query, baseFrom: String(TAKEN - 1000), baseUntil: String(TAKEN + 20_000) },
      ...{ from: String(TAKEN + 29_000), until: String(TAKEN + 50_000) },
    })}`,
  };
  for (const [view, address] of Object.entries(views)) {
    const open = async () => {
      await page.goto(address);
      await page.waitForFunction(() => performance.getEntriesByName("stakeout:flamegraph").length > 0);
      await page.waitForLoadState("networkidle");
    };
    await open();
    const controls = await controlsOf(page);
    expect(controls.length).toBeGreaterThan(25);
    for (const control of controls) {
      await open();
      await worst(page);
      const done = await use(page, control).then(
        () => true,
        () => false,
      );
      tell({ what: "control", view, frames: FRAMES, name: control.name, done, ms: await worst(page) });
    }
    for (const [name, act] of Object.entries(ON_FRAMES)) {
      await open();
      const box = await page.getByTestId("flamegraph").boundingBox();
      await worst(page);
      await act(page, (box?.x ?? 0) + (box?.width ?? 0) * 0.3, (box?.y ?? 0) + 60);
      tell({ what: "control", view, frames: FRAMES, name, done: true, ms: await worst(page) });
    }
  }
});
