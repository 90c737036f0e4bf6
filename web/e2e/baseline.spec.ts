/**
 * Which side A a comparison takes: covered time in which the selection ran, and nothing is said against a side
 * without samples.
 */
import type { APIRequestContext } from "@playwright/test";
import { course } from "./known.ts";
import { at, busyOnly, colours, expect, hoverRoot, parameter, test, type Windows } from "./stack.ts";
import { waitCovered } from "./windows.ts";

const IDLE = { frames: [{ name: "main" }, { name: "wait" }], samples: 4 };
const BUSY = { frames: [{ name: "main" }, { name: "walk" }], samples: 16 };
const NOTHING = { frames: [{ name: "main" }], samples: 0 };
const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

/**
 * Seconds that the agent watched, whatever the machine did: a course has its own. They lie behind the windows, in which
 * other flows count samples at the same time.
 */
async function watched({ after }: Windows, request: APIRequestContext) {
  const range = { from: after.until, until: after.until + 18_000 };
  await waitCovered(request, range.until);
  return range;
}

const time = (page: Parameters<typeof parameter>[0], name: string) => Number(parameter(page, name));

test("where the cores changed most, a click compares as long before as after", async ({ page, windows, request }) => {
  const range = await watched(windows, request);
  const query = await course(request, "jump", range.from, [...times(8, IDLE), ...times(10, BUSY)]);
  await page.goto(at(range, query));
  const jump = page.getByTestId("largest-change");
  await expect(jump).toHaveAttribute("title", /From 0\.2\d* to 0\.8\d* cores/);
  await jump.click();
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  const change = range.from + 8_000;
  expect(time(page, "baseUntil")).toBeLessThanOrEqual(change);
  expect(time(page, "baseUntil")).toBeGreaterThanOrEqual(change - 2_000);
  expect(time(page, "from")).toBeGreaterThanOrEqual(change);
  expect(time(page, "from")).toBeLessThanOrEqual(change + 2_000);
  expect(time(page, "until") - time(page, "from")).toBe(time(page, "baseUntil") - time(page, "baseFrom"));
  await expect(page.getByTestId("changes")).toContainText("walk");
  // What was chosen is among what can be.
  await expect(page.getByLabel("Place window A")).toHaveValue(/^before .* → .* cores$/);
  const found = ["baseFrom", "baseUntil", "from", "until"].map((name) => time(page, name));
  await page.getByRole("button", { name: "Swap" }).click();
  await jump.click();
  expect(["baseFrom", "baseUntil", "from", "until"].map((name) => time(page, name))).toEqual(found);
  for (let i = 0; i < 3; i++) await page.goBack();
  await expect.poll(() => parameter(page, "view")).toBeNull();
});

test("a start is called so, and is not compared with the time before it", async ({ page, windows, request }) => {
  const range = await watched(windows, request);
  const query = await course(request, "start", range.from, [...times(9, NOTHING), ...times(9, BUSY)]);
  await page.goto(at(range, query));
  await page.getByRole("button", { name: /^1 change point/ }).click();
  const point = page.getByTestId("change-points").getByRole("button");
  await expect(point).toContainText(/started.*nothing before it to compare with/);
  await expect(page.getByTestId("largest-change")).toHaveCount(0);
  await point.click();
  await expect.poll(() => time(page, "from")).toBe(range.from + 9_000);
  // What is looked at has nothing before it: its own halves are compared, and it says so.
  await page.getByRole("button", { name: "Compare with previous window" }).click();
  await expect(page.getByTestId("baseline")).toContainText(/first half.*(it started|no agent covered)/);
  await expect(page.getByTestId("verdict")).toContainText("0.800 → 0.800 cores");
  await expect(page.getByTestId("changes")).toHaveCount(0);
  await page.reload();
  await expect(page.getByTestId("baseline")).toContainText("first half");
});

test("side A begins where the selection did, and B is as long", async ({ page, windows, request }) => {
  const range = await watched(windows, request);
  const seconds = [...times(3, NOTHING), ...times(5, IDLE), ...times(10, BUSY)];
  const query = await course(request, "young", range.from, seconds);
  await page.goto(at({ from: range.from + 8_000, until: range.from + 18_000 }, query));
  await page.getByRole("button", { name: "Compare with previous window" }).click();
  await expect(page.getByTestId("baseline")).toContainText(/until .*, B as long: it started/);
  const slider = page.getByRole("slider", { name: "Start of window A, before" });
  const begin = Number(await slider.getAttribute("aria-valuenow"));
  expect(begin).toBeGreaterThanOrEqual(range.from + 3_000);
  expect(begin).toBeLessThanOrEqual(range.from + 5_000);
  await expect(page.getByTestId("changes")).toContainText("walk");
});

test("against a side without samples nothing has a mark, a colour or a sentence", async ({
  page,
  windows,
  request,
}) => {
  const { before, after } = windows;
  const windowsOf = { baseFrom: String(before.from), baseUntil: String(before.until) };
  await page.goto(
    at(after, { view: "compare", query: busyOnly(windows), normalize: "rate", tab: "functions", ...windowsOf }),
  );
  await expect(page.getByTestId("verdict")).toContainText("nothing to compare");
  await expect(page.getByText("A has no samples: nothing is compared.")).toBeVisible();
  await expect.poll(() => colours(page)).toBeGreaterThan(1);
  await expect(page.getByTestId("changes")).toHaveCount(0);
  const table = page.getByRole("grid", { name: "Functions of both windows" });
  await expect(table.locator(".vtable-row.same").first()).toBeVisible();
  await expect(table.locator(".vtable-row:not(.same) .mark:not(.same)")).toHaveCount(0);
  const tooltip = await hoverRoot(page);
  await expect(tooltip).not.toContainText("new");
  const times = { from: String(after.from), until: String(after.until) };
  const asked = new URLSearchParams({ query: busyOnly(windows), ...times });
  const answer = await request.get(`/api/v1/flamegraph?${asked}`);
  const { samples } = (await answer.json()) as { samples: number };
  const cells = (await tooltip.locator("td").allTextContents()).map((text) => text.replace(/\D/g, ""));
  expect([cells[0], cells[4]]).toEqual(["0", String(samples)]);
  await page.getByTestId("choose-base").click();
  await expect(page.getByTestId("baseline")).toContainText("first half");
  await expect(page.getByTestId("verdict")).not.toContainText("nothing to compare");
});
