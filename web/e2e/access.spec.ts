/** What opens on a view has no serious fault for a screen reader or weak sight: menus, the palette, dialogs. */
import type { Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { kubeletJump, networkStalls } from "./incidents.ts";
import { at, colours, comparison, expect, test } from "./stack.ts";

/** What is there once it is open. */
const OPENERS: Record<string, (page: Page) => Promise<void>> = {
  palette: async (page) => {
    await page.keyboard.press("Control+k");
    await page.getByTestId("palette").fill("saved");
    await expect(page.getByRole("dialog", { name: "Go to" }).getByRole("option").first()).toBeVisible();
  },
  "share menu": async (page) => {
    await page.getByRole("button", { name: /^Share/ }).click();
    await expect(page.getByTestId("share-fixed")).toBeVisible();
  },
  "saved views": async (page) => {
    await page.getByRole("button", { name: "Saved views" }).click();
    await expect(page.getByRole("dialog", { name: "Saved views" })).toBeVisible();
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
const EVERYWHERE = ["palette", "share menu", "saved views"];
const OF_GRAPHS = [...EVERYWHERE, "sibling menu", "frame menu"];
const OPEN_ON: Record<string, readonly string[]> = {
  explore: [...OF_GRAPHS, "value menu"],
  compare: [...OF_GRAPHS, "value menu"],
  heatmap: OF_GRAPHS,
  timeline: OF_GRAPHS,
  nodes: EVERYWHERE,
};

for (const theme of ["light", "dark"])
  for (const [view, names] of Object.entries(OPEN_ON))
    test(`${view} in ${theme}: ${names.join(", ")}`, async ({ page, request }) => {
      const { node, range } = await kubeletJump(request, `access-${view}-${theme}`);
      const query = `{node="${node}",service="kubelet"}`;
      const middle = (range.from + range.until) / 2;
      const both = { before: { ...range, until: middle }, after: { ...range, from: middle } };
      const more = { theme, query, by: "thread" };
      if (view === "timeline") {
        const stalls = await networkStalls(request, `access-${theme}`);
        const lane = `{node="${stalls.node}",service="ksoftirqd",cpu="11"}`;
        await page.goto(at(stalls.range, { view, theme, query: lane, hit: "net_rx_action", before: "100" }));
      } else if (view === "compare") await page.goto(comparison({ busy: "", ...both }, more));
      else if (view === "heatmap") await page.goto(at(range, { ...more, view, markA: `${middle}-${range.until}` }));
      else await page.goto(view === "nodes" ? `/?view=nodes&theme=${theme}` : at(range, more));
      if (view === "nodes") await expect(page.locator(".nodes .vtable-row").first()).toBeVisible();
      else await expect.poll(() => colours(page)).toBeGreaterThan(2);
      await page.waitForLoadState("networkidle");
      for (const name of names) {
        await OPENERS[name]?.(page);
        expect(await serious(page), name).toEqual([]);
        await page.keyboard.press("Escape");
      }
    });
