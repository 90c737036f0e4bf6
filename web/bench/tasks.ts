/** How long the page does not answer: its long tasks, as the browser tells them. */
import type { Page } from "@playwright/test";

/** To be called before the page is opened. */
export async function watchTasks(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const tasks: number[] = [];
    Object.assign(window, { tasks });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) tasks.push(duration);
    }).observe({ type: "longtask" });
  });
}

/** The longest task of an action in milliseconds, of the calmest of some turns: the machine has other work. */
export async function longest(page: Page, turns: readonly (() => Promise<unknown>)[]): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (const act of turns) {
    await page.evaluate(() => {
      (window as unknown as { tasks: number[] }).tasks.length = 0;
    });
    await act();
    // Tasks are told a little later than they end.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 200))));
    const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
    least = Math.min(least, Math.max(0, ...tasks));
  }
  return least;
}
