/** What axe finds that is serious or critical on the page as it is. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, type Page } from "@playwright/test";

interface Found {
  violations: { id: string; impact: string; nodes: { html: string }[] }[];
}

interface Options {
  resultTypes: ["violations"];
  runOnly?: { type: "rule"; values: readonly string[] };
}

/** Rules whose answer depends on colours: all of axe's category of that name that it runs by itself. */
export const OF_COLOURS = ["color-contrast", "link-in-text-block"];

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** By all rules, or by these. */
export async function serious(page: Page, rules?: readonly string[]): Promise<string[]> {
  // It stays in the page until another document is opened there.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const options: Options = { resultTypes: ["violations"] };
  if (rules !== undefined) options.runOnly = { type: "rule", values: rules };
  return page.evaluate(async (chosen) => {
    const { axe } = window as unknown as { axe: { run: (of: Document, by: Options) => Promise<Found> } };
    const { violations } = await axe.run(document, chosen);
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
  }, options);
}

/** The system's colours turn to the other theme, and the page, where none is chosen, with them. */
export async function turn(page: Page): Promise<"light" | "dark"> {
  const html = page.locator("html");
  const theme = (await html.getAttribute("data-theme")) === "dark" ? "light" : "dark";
  await page.emulateMedia({ colorScheme: theme });
  await expect(html).toHaveAttribute("data-theme", theme);
  // What has its colour from the script is drawn with the next pictures.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return theme;
}

/**
 * In both themes, of a page whose address chooses none: by all rules in the one that it has, and by those of colours in
 * the other one, which it keeps. Everything else is the same in both.
 */
export async function seriousInBoth(page: Page): Promise<string[]> {
  const first = await serious(page);
  const theme = await turn(page);
  const second = await serious(page, OF_COLOURS);
  return [...first, ...second.map((fault) => `in ${theme}: ${fault}`)];
}
