/** What opens on a view has no serious fault for a screen reader or weak sight: menus, the palette, dialogs. */
import type { Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { kubeletJump, networkStalls } from "./incidents.ts";
import { at, colours, comparison, expect, test } from "./stack.ts";

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
    if (page.viewportSize()?.width === 390) await more(page);
    else await page.getByRole("button", { name: /^Share/ }).click();
    await expect(page.getByTestId("share-fixed")).toBeVisible();
  },
  "saved views": async (page) => {
    await more(page);
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
/** What a phone has instead of a bar, and of what stands beside the graph. */
const ON_PHONES: Record<string, (page: Page) => Promise<void>> = {
  views: async (page) => {
    await page.getByRole("button", { name: "Views", exact: true }).click();
    await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
  },
  table: async (page) => {
    const tabs = page.getByRole("tablist", { name: "Beside the graph" });
    await tabs.getByRole("tab").nth(1).click();
    await expect(page.getByRole("tabpanel")).toBeVisible();
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

for (const size of SIZES)
  for (const theme of ["light", "dark"])
    for (const [view, names] of Object.entries(OPEN_ON))
      test(`${view} in ${theme}, ${size.width} wide: ${names.join(", ")}`, async ({ page, request }) => {
        const isPhone = size.width < 560;
        await page.setViewportSize(size);
        const { node, range } = await kubeletJump(request, `access-${view}-${theme}-${size.width}`);
        const query = `{node="${node}",service="kubelet"}`;
        const middle = (range.from + range.until) / 2;
        const both = { before: { ...range, until: middle }, after: { ...range, from: middle } };
        // What is folded on a phone is looked at as well.
        const unfolded = isPhone ? { more: "chart,data,filter,graph,key,sides" } : {};
        const chosen = { theme, query, by: "thread", ...unfolded };
        if (view === "timeline") {
          const stalls = await networkStalls(request, `access-${theme}-${size.width}`);
          const lane = `{node="${stalls.node}",service="ksoftirqd",cpu="11"}`;
          await page.goto(at(stalls.range, { view, ...chosen, query: lane, hit: "net_rx_action", before: "100" }));
        } else if (view === "compare") await page.goto(comparison({ busy: "", ...both }, chosen));
        else if (view === "heatmap") await page.goto(at(range, { ...chosen, view, markA: `${middle}-${range.until}` }));
        else await page.goto(view === "nodes" ? `/?view=nodes&theme=${theme}` : at(range, chosen));
        if (view === "nodes") await expect(page.locator(".nodes .vtable-row").first()).toBeVisible();
        else await expect.poll(() => colours(page)).toBeGreaterThan(2);
        await page.waitForLoadState("networkidle");
        expect(await serious(page), "as it opens").toEqual([]);
        for (const name of names) {
          await OPENERS[name]?.(page);
          expect(await serious(page), name).toEqual([]);
          await page.keyboard.press("Escape");
        }
        if (!isPhone) return;
        for (const [name, open] of Object.entries(ON_PHONES)) {
          if (name === "table" && view === "nodes") continue;
          await open(page);
          expect(await serious(page), name).toEqual([]);
          await page.keyboard.press("Escape");
        }
      });
