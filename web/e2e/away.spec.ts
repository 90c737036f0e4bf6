/** A server that goes away, comes back, or takes the token no longer, while pages are open. */
import type { BrowserContext, Page } from "@playwright/test";
import { at, colours, comparison, expect, test } from "./stack.ts";

const API = "**/api/v1/**";
/** A window without samples. */
const NOTHING = { from: 1_700_000_000_000, until: 1_700_000_600_000 };

async function goAway(of: Page | BrowserContext): Promise<void> {
  await of.route(API, (route) => route.abort("connectionrefused"));
}

async function refuse(of: Page | BrowserContext): Promise<void> {
  const error = { code: "unauthorized", message: "a viewing token is needed", hint: "for programs" };
  await of.route(API, (route) => route.fulfill({ status: 401, json: { error } }));
}

test.use({ allowErrors: [/ERR_CONNECTION_REFUSED|status of 401/] });

test("a live page says that the server is away, keeps what it had, and goes on by itself", async ({
  page,
  windows,
}) => {
  expect(windows.after.until).toBeGreaterThan(0);
  await page.goto("/?from=now-5m&until=now&live=1");
  await expect.poll(() => colours(page)).toBeGreaterThan(1);
  await goAway(page);
  await expect(page.getByRole("alert").first()).toContainText("The server does not answer.");
  expect(await colours(page)).toBeGreaterThan(1);
  await page.unroute(API);
  await expect(page.getByRole("alert")).toHaveCount(0);
});

for (const [name, address] of [
  ["explore", at(NOTHING)],
  ["compare", comparison({ busy: "", before: { from: 1_699_999_000_000, until: NOTHING.from }, after: NOTHING })],
] as const) {
  test(`a page without samples says that it could not ask again (${name})`, async ({ page }) => {
    await page.goto(address);
    await expect(page.locator(".notice.empty").first()).toBeVisible();
    await goAway(page);
    await page.getByRole("button", { name: "Refresh", exact: true }).click();
    await expect(page.getByRole("alert").first()).toContainText("The server does not answer.");
    await page.unroute(API);
    await page.getByRole("button", { name: "Try again" }).first().click();
    await expect(page.getByRole("alert")).toHaveCount(0);
    await expect(page.locator(".notice.empty").first()).toBeVisible();
  });
}

test("a token that is taken no longer leads to the sign-in, of each tab, and back", async ({
  page,
  context,
  windows,
}) => {
  const address = at(windows.after, { by: "process" });
  await page.goto(address);
  const second = await context.newPage();
  await second.goto(at(windows.before));
  for (const tab of [page, second]) await expect.poll(() => colours(tab)).toBeGreaterThan(1);
  await refuse(context);
  for (const tab of [page, second]) {
    await tab.getByRole("button", { name: "Refresh", exact: true }).click();
    const notice = tab.getByRole("alert").first();
    await expect(notice).toContainText("no longer takes this browser's token");
    await expect(notice).not.toContainText("for programs");
    const next = new URL(tab.url());
    await expect(notice.getByRole("link", { name: "Sign in" })).toHaveAttribute(
      "href",
      `/login?next=${encodeURIComponent(next.pathname + next.search)}`,
    );
  }
  // Signed in again in one tab: the other goes on, too.
  await context.unroute(API);
  for (const tab of [page, second]) {
    await tab.getByRole("button", { name: "Refresh", exact: true }).click();
    await expect(tab.getByRole("alert")).toHaveCount(0);
  }
});
