/** What a hand is at stays while answers come: the row, the frame, the place, the focus. */
import type { Page, Route } from "@playwright/test";
import { fleet } from "./fleet.ts";
import { askAnew, at, expect, parameter, test } from "./stack.ts";

/** What is answered from now on is changed by what is given last. */
async function changed<T>(page: Page, address: string): Promise<(change: (answer: T) => T) => void> {
  let change = (answer: T) => answer;
  await page.route(address, async (route: Route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: change((await answer.json()) as T) });
  });
  return (next) => {
    change = next;
  };
}

test("the row that keys have come to is what Enter takes, wherever a newer answer puts it", async ({ page }) => {
  const [first, second, third] = fleet(3) as [{ node: string }, { node: string }, { node: string }];
  let nodes = [first, second, third];
  await page.route("**/api/v1/nodes", (route) => route.fulfill({ json: { nodes } }));
  await page.goto("/?view=nodes&sort=node");
  const table = page.getByRole("grid", { name: "Table of agents" });
  await expect(table.locator(".vtable-row").first()).toContainText(first.node);
  await table.focus();
  await page.keyboard.press("ArrowDown");
  await expect(table.locator(".vtable-row.active")).toContainText(second.node);
  // The list asks again by itself; of what comes, one stands before all others.
  nodes = [...nodes, { ...first, node: "a-new-one", instance: "new" } as typeof first];
  await expect(table.locator(".vtable-row").filter({ hasText: "a-new-one" })).toBeVisible();
  await expect(table.locator(".vtable-row.active")).toContainText(second.node);
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "agent")).toBe("instance-1");
  // What had the row goes: the next one comes to its place.
  nodes = nodes.filter(({ node }) => node !== second.node);
  await expect(table.locator(".vtable-row").filter({ hasText: second.node })).toHaveCount(0);
  await expect(table.locator(".vtable-row.active")).toContainText(third.node);
});

test("what has the focus keeps it where a newer answer has another order", async ({ page, windows }) => {
  const answers = await changed<{ series: unknown[] }>(page, "**/api/v1/series*");
  await page.goto(at({ from: windows.before.from, until: windows.after.until }, { by: "process" }));
  const layers = page.getByTestId("layers").locator("button.layer-name");
  await expect.poll(() => layers.count()).toBeGreaterThan(2);
  const names = () => layers.allTextContents();
  let isTurned = false;
  for (const at of [0, 1, 2]) {
    const before = await names();
    const layer = layers.nth(at);
    await layer.focus();
    const name = await layer.textContent();
    isTurned = !isTurned;
    answers((answer) => (isTurned ? { ...answer, series: answer.series.toReversed() } : answer));
    await askAnew(page);
    await expect.poll(names).toEqual(before.toReversed());
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe(name);
  }
  await page.unrouteAll({ behavior: "ignoreErrors" });
});
