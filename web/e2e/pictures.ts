/**
 * Pictures of the walks that the guide tells, taken by the flows that play them: `web/screenshots/walk`. They are taken
 * where `STAKEOUT_PICTURES` is set, since a test by itself changes no file.
 */
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";

const FOLDER = join(import.meta.dirname, "../screenshots/walk");

/** What is in sight, once all of it is there. */
export async function pictured(page: Page, name: string): Promise<void> {
  if (process.env.STAKEOUT_PICTURES === undefined) return;
  await page.waitForLoadState("networkidle");
  await expect(page.locator(".progress")).toBeEmpty();
  await expect(page.locator('.busy.on, [aria-busy="true"]')).toHaveCount(0);
  // No frame is told of in a tooltip.
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
}
