/** Fleets of many nodes: answers that are made up, given to the real page, with sums that are known by construction. */
import type { Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { fleet, NOW } from "./fleet.ts";
import { expect, parameter, test } from "./stack.ts";

async function open(page: Page, count: number, more = ""): Promise<void> {
  const body = JSON.stringify({ nodes: fleet(count) });
  await page.route("**/api/v1/nodes", (route) => route.fulfill({ contentType: "application/json", body }));
  await page.goto(`/?view=nodes${more}`);
  await expect(page.getByRole("grid", { name: "Table of agents" }).locator(".vtable-row").first()).toBeVisible();
}

const table = (page: Page) => page.getByRole("grid", { name: "Table of agents" });
const listed = (page: Page) => table(page).locator(".vtable-row");
const isListed = (page: Page, count: number) => expect(table(page)).toHaveAttribute("aria-rowcount", String(count + 1));

for (const count of [1_000, 10_000])
  test(`${count} nodes: few elements, whatever is searched, sorted, filtered or scrolled`, async ({ page }) => {
    await open(page, count);
    await isListed(page, count);
    const few = async () => {
      expect(await listed(page).count()).toBeLessThan(90);
      expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(3_000);
    };
    await few();
    const find = page.getByTestId("find-agents");
    await find.fill("node-77");
    await expect(listed(page).first()).toContainText("node-77");
    await few();
    await find.fill("");
    await isListed(page, count);
    const head = page.getByRole("columnheader", { name: /^Node/ });
    await head.getByRole("button").click();
    await expect(head).toHaveAttribute("aria-sort", "ascending");
    await few();
    await page.getByTestId("agent-trouble").selectOption("lost");
    await isListed(page, count / 10);
    await few();
    await page.getByTestId("agent-trouble").selectOption("");
    await isListed(page, count);
    await table(page).evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await expect(listed(page).last()).toBeInViewport();
    await few();
  });

test("words, state, version, kernel and trouble narrow the list, stand in the address, and count", async ({ page }) => {
  await open(page, 600);
  const sum = page.getByTestId("fleet-sum");
  await expect(sum).toContainText("600 agents");
  await expect(sum).toContainText(/4\s800 CPUs/);
  await expect(sum).toContainText("6 not reporting");
  // Silent ones need a person first.
  await expect(listed(page).first()).toHaveClass(/silent/);
  await page.getByTestId("agent-version").selectOption("0.2.9");
  await isListed(page, 200);
  await page.getByTestId("agent-kernel").selectOption("5.15.0-101");
  await isListed(page, 100);
  await page.getByTestId("agent-trouble").selectOption("lost");
  // Those with i % 30 = 13, of 3 modulo 10, 1 modulo 3 and odd.
  await isListed(page, 20);
  await expect(sum).toContainText("100 lost");
  await page.getByTestId("find-agents").fill("node-13");
  await isListed(page, 2);
  const search = () => new URL(page.url()).searchParams;
  await expect.poll(() => search().get("find")).toBe("node-13");
  expect([search().get("agentVersion"), search().get("kernel"), search().get("trouble")]).toEqual([
    ...["0.2.9", "5.15.0-101", "lost"],
  ]);
  await page.reload();
  await isListed(page, 2);
  await page.getByTestId("all-agents").click();
  await isListed(page, 600);
  await page.goBack();
  await isListed(page, 2);
  await page.goto("/?view=nodes&state=silent");
  await isListed(page, 6);
});

test("sums by version, kernel and trouble are right, and each is a filter", async ({ page }) => {
  await open(page, 600, "&more=totals");
  const row = (by: string, name: string) =>
    page.getByTestId(`totals-${by}`).getByRole("row").filter({ hasText: name }).getByRole("cell");
  // Silent agents take no time now.
  await expect(row("version", "0.3.0")).toHaveText(["200", /1.600/, /./, "100", /^1\.98$/, /./]);
  await expect(row("kernel", "6.8.0-45").first()).toHaveText("300");
  await expect(row("trouble", "lost samples").first()).toHaveText("60");
  await expect(row("trouble", "limits hit").first()).toHaveText("12");
  await expect(row("trouble", "not reporting").first()).toHaveText("6");
  await page.getByTestId("totals-trouble").getByRole("button", { name: "limits hit" }).click();
  await isListed(page, 12);
  await expect(row("version", "0.2.9").first()).toHaveText("4");
});

test("a sender that is no agent has a row, whatever it does not say", async ({ page }) => {
  const sender = { node: "otel", instance: "", last_seen: NOW, samples_stored: 5, late: false, has_account: false };
  const json = { nodes: [...fleet(3), { ...sender, refusals: [] }] };
  await page.route("**/api/v1/nodes", (route) => route.fulfill({ json }));
  await page.goto("/?view=nodes&more=totals&sort=-version");
  await isListed(page, 4);
  const row = listed(page).filter({ hasText: "otel" });
  await expect(row).toContainText("no agent");
  await row.click();
  await expect(page.getByTestId("agent-details")).toContainText("A sender without an account");
  await expect(page.getByTestId("fleet-sum")).toContainText("3 agents");
});

test("any column sorts, keys alone do all, and an agent is told in full", async ({ page }) => {
  await open(page, 600);
  const cost = page.getByRole("columnheader", { name: /^Lost/ });
  await cost.getByRole("button").click();
  await expect(cost).toHaveAttribute("aria-sort", "descending");
  await expect(listed(page).first()).toContainText("ring_full 5");
  await page.getByRole("columnheader", { name: /^Node/ }).getByRole("button").click();
  await expect(listed(page).first()).toContainText("rack0-node-0");
  await table(page).focus();
  await page.keyboard.press("End");
  await expect(listed(page).last()).toContainText("rack14-node-599");
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "agent")).toBe("instance-599");
  const details = page.getByTestId("agent-details");
  await expect(details).toContainText("instance-599");
  await expect(details).toContainText(/1\s599 taken = 1\s599 stored \+ 0 lost/);
  await details.getByRole("link", { name: "Explore" }).press("Enter");
  await expect.poll(() => parameter(page, "query")).toBe('{node="rack14-node-599"}');
});

for (const [width, height] of [
  [1440, 900],
  [1280, 720],
  [768, 800],
  [390, 844],
] as const) {
  test(`is accessible and fits at ${width} x ${height}, with totals and an agent open`, async ({ page }) => {
    await page.setViewportSize({ width, height });
    await open(page, 600, "&more=totals&agent=instance-7");
    await expect(page.getByTestId("agent-details")).toBeVisible();
    expect(await serious(page)).toEqual([]);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(over).toBe(0);
    const small = await page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>(".nodes button, .nodes select, .nodes input")]
        .filter((one) => one.getBoundingClientRect().height > 0)
        .filter((one) => one.getBoundingClientRect().height < 22)
        .map((one) => one.outerHTML.slice(0, 80)),
    );
    expect(small).toEqual([]);
    // No column stands beyond the edge: those that have no room are in what an agent is told in full.
    const beyond = await table(page).evaluate((box) => box.scrollWidth - box.clientWidth);
    expect(beyond).toBe(0);
    await page.screenshot({ path: `test-results/nodes-${width}.png` });
  });
}
