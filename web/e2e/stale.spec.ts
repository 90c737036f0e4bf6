/** Between a change of what is asked and its answer, figures are seen to be old, in all views, and nothing moves. */
import type { Page, Route } from "@playwright/test";
import { kubeletJump } from "./incidents.ts";
import { at, colours, comparison, expect, placeOf, test } from "./stack.ts";

/** Requests to the API wait until they are let go. */
async function held(page: Page): Promise<() => Promise<void>> {
  const waiting: Route[] = [];
  let isOpen = false;
  await page.route("**/api/v1/**", async (route) => {
    if (isOpen) await route.continue();
    else waiting.push(route);
  });
  return async () => {
    isOpen = true;
    await Promise.all(waiting.map((route) => route.continue().catch(() => {})));
  };
}

/** What has to be dimmed: figures of the window, and what draws them. */
const DIMMED: Record<string, readonly string[]> = {
  explore: [".chart-row", ".chart .figures", ".flame", ".pane-panel", ".data-chip"],
  compare: [".chart-row", ".verdict", ".flame", ".pane-panel"],
  heatmap: [".heat-box", ".heat-legend", ".flame", ".pane-panel"],
  timeline: [".timeline-panes"],
};

for (const [view, parts] of Object.entries(DIMMED))
  test(`${view}: what is of another question is dimmed until the answer is there`, async ({ page, request }) => {
    const { node, range } = await kubeletJump(request, `stale-${view}`);
    const middle = (range.from + range.until) / 2;
    const both = { before: { ...range, until: middle }, after: { ...range, from: middle } };
    const query = `{node="${node}"}`;
    if (view === "compare") await page.goto(comparison({ busy: "", ...both }, { query }));
    else if (view === "timeline") await page.goto(at(range, { view, query: `{node="${node}",thread="gc"}` }));
    else await page.goto(at(range, { view, query }));
    const canvas = view === "timeline" ? "timeline" : "flamegraph";
    await expect.poll(() => colours(page, canvas)).toBeGreaterThan(2);
    await page.waitForLoadState("networkidle");
    const opacity = (part: string) =>
      page
        .locator(part)
        .first()
        .evaluate((element) => Number(getComputedStyle(element).opacity));
    for (const part of parts) expect(await opacity(part), part).toBe(1);
    const places = await Promise.all(parts.map((part) => placeOf(page.locator(part).first())));

    const release = await held(page);
    const next = view === "timeline" ? `{node="${node}",thread="syncloop"}` : `{node="${node}",service="kubelet"}`;
    // As Back and Forward do it: the box of the selector asks the server what is meant first.
    await page.evaluate((text) => {
      const to = new URL(location.href);
      to.searchParams.set("query", text);
      history.pushState(null, "", to);
      dispatchEvent(new PopStateEvent("popstate"));
    }, next);
    for (const part of parts) await expect.poll(() => opacity(part), { message: part }).toBeLessThan(0.6);
    await expect(page.locator('[aria-busy="true"]').first()).toBeAttached();
    // Nothing moved; a line below a chart may come or go with the answer.
    const still = await Promise.all(parts.map((part) => placeOf(page.locator(part).first())));
    expect(still).toEqual(places);

    await release();
    await page.waitForLoadState("networkidle");
    for (const part of parts) await expect.poll(() => opacity(part), { message: part }).toBe(1);
    await expect(page.locator('[aria-busy="true"]')).toHaveCount(0);
  });
