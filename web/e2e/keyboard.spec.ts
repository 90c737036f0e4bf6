/** The kubelet jump (S1) without a pointer: find who grew, choose the time, compare, read what grew, zoom to it. */
import type { Locator, Page } from "@playwright/test";
import { tabTo } from "./hand.ts";
import { at, busyOnly, colours, expect, parameter, READERS, test, zoomStays } from "./stack.ts";

/** Moves the chart's line to a moment with arrows, first in large steps. */
async function moveLine(page: Page, brush: Locator, moment: number, step: number): Promise<void> {
  const now = async () => Number(await brush.getAttribute("aria-valuenow"));
  for (const [size, key] of [
    [step * 10, "Shift+"],
    [step, ""],
  ] as const) {
    for (let i = 0; i < 200 && Math.abs((await now()) - moment) > size / 2 + 1; i++) {
      const before = await now();
      await page.keyboard.press(`${key}${before < moment ? "ArrowRight" : "ArrowLeft"}`);
      await expect.poll(now).not.toBe(before);
    }
  }
  expect(Math.abs((await now()) - moment)).toBeLessThanOrEqual(step);
}

test("S1 by keyboard alone, from everything to the frame that grew", async ({ page, windows }) => {
  const range = { from: windows.before.from, until: windows.after.until };
  await page.goto(at(range, { query: READERS, tab: "lists" }));
  const row = page
    .getByRole("region", { name: "Largest by process" })
    .getByRole("button", { name: new RegExp(`^process ${windows.busy}`) });
  await tabTo(page, row);
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "query")).toBe(busyOnly(windows));
  // Before, it did not run: what changed is told of the machine.
  const clear = page.getByRole("button", { name: "Clear Selector" });
  await tabTo(page, clear);
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "query")).toBeNull();

  const brush = page.getByTestId("brush");
  const step = (range.until - range.from) / 100;
  await tabTo(page, brush);
  await moveLine(page, brush, windows.after.from, step);
  await page.keyboard.press("Enter");
  await moveLine(page, brush, windows.after.until, step);
  await page.keyboard.press("Enter");
  await expect.poll(() => Math.abs(Number(parameter(page, "from")) - windows.after.from)).toBeLessThanOrEqual(step);

  await tabTo(page, page.getByRole("button", { name: "Compare with previous window" }));
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  const sentence = page.getByTestId("changes").getByRole("button").filter({ hasText: "cores" }).first();
  await expect(sentence).toContainText(/→ .*cores/);
  await tabTo(page, sentence);
  await page.keyboard.press("Enter");
  await expect.poll(() => colours(page)).toBeGreaterThan(1);
  await zoomStays(page);
  // The browser's own key for it does not reach a page that is driven from outside.
  await page.goBack();
  await expect.poll(() => parameter(page, "focus")).toBeNull();
});
