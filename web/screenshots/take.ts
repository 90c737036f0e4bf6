/**
 * The first screen of each view, and the states that a person meets: sheets of pictures to be looked at.
 * In: `STAKEOUT_URL`. Out: a sheet for each view and one for each state, in `sheets/` beside this file.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type Page, test } from "@playwright/test";
import { fleet } from "../e2e/fleet.ts";

const SHEETS = join(import.meta.dirname, "sheets");
const SIZES = [
  [1440, 900],
  [1280, 720],
  [390, 844],
] as const;
const THEMES = ["light", "dark"] as const;
const VIEWS = ["explore", "compare", "heatmap", "timeline", "nodes"] as const;
const KUBELET = 'query={service="kubelet"}';

/** What a state does before the page is opened, and the addresses that show it. */
const STATES: Record<string, { before?: (page: Page) => Promise<unknown>; addresses: string[]; waits?: boolean }> = {
  empty: {
    addresses: [
      "/?from=0&until=60000",
      "/?view=compare&query={service=%22nobody%22}",
      "/?view=heatmap&from=0&until=60000",
    ],
  },
  loading: {
    before: (page) => page.route("**/api/v1/**", () => {}),
    addresses: ["/", "/?view=compare", "/?view=nodes"],
    waits: true,
  },
  error: {
    before: (page) =>
      page.route("**/api/v1/**", (route) =>
        route.fulfill({
          status: 503,
          json: { error: { code: "overloaded", message: "all turns are taken", hint: "ask again in a moment" } },
        }),
      ),
    addresses: ["/", "/?view=compare", "/?view=nodes"],
  },
  "one process": { addresses: [`/?${KUBELET}`, `/?view=compare&${KUBELET}`, `/?view=timeline&${KUBELET}`] },
  "three warnings": { before: warn, addresses: ["/?more=data", "/?view=compare&more=data"] },
  "10000 nodes": {
    before: (page) => page.route("**/api/v1/nodes", (route) => route.fulfill({ json: { nodes: fleet(10_000) } })),
    addresses: ["/?view=nodes", "/?view=nodes&more=totals", "/?view=nodes&trouble=lost"],
  },
};

async function warn(page: Page): Promise<void> {
  await page.route(/api\/v1\/(diff|flamegraph)\?/, async (route) => {
    const answer = await route.fetch();
    const json = (await answer.json()) as Record<string, unknown>;
    for (const side of [json, json.base, json.comparison] as Record<string, unknown>[]) {
      if (side?.exposure === undefined) continue;
      const { from, until } = side as { from: number; until: number };
      const gap = [from + (until - from) * 0.4, from + (until - from) * 0.5];
      Object.assign(side.exposure as object, { node_share: 0.9, gaps: [gap] });
      Object.assign(side.quality as object, { lost: { ring_full: 2 } });
    }
    await route.fulfill({ response: answer, json });
  });
}

interface Picture {
  about: string;
  width: number;
  bytes: string;
}

async function picture(page: Page, address: string, waits: boolean): Promise<string> {
  await page.goto(address);
  if (!waits) await page.waitForLoadState("networkidle");
  // The spinner comes after a moment, and so do fonts.
  await page.waitForTimeout(waits ? 1_500 : 600);
  return (await page.screenshot()).toString("base64");
}

/** All pictures side by side, at half of their size. */
async function sheet(browser: Browser, name: string, pictures: readonly Picture[]): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1900, height: 400 } });
  const items = pictures.map(
    ({ about, width, bytes }) =>
      `<figure><figcaption>${about}</figcaption><img width="${width / 2}" src="data:image/png;base64,${bytes}"></figure>`,
  );
  await page.setContent(
    `<style>body{margin:8px;display:flex;flex-wrap:wrap;gap:8px;font:12px sans-serif;background:#888}figure{margin:0}</style>${items.join("")}`,
  );
  await page.waitForFunction(() => [...document.images].every((image) => image.complete));
  mkdirSync(SHEETS, { recursive: true });
  const path = join(SHEETS, `${name.replace(/ /g, "-")}.jpg`);
  await page.screenshot({ path, fullPage: true, type: "jpeg", quality: 72 });
  await page.close();
}

for (const view of VIEWS)
  test(view, async ({ browser }) => {
    const pictures: Picture[] = [];
    for (const [width, height] of SIZES)
      for (const theme of THEMES) {
        const page = await browser.newPage({ viewport: { width, height } });
        const bytes = await picture(page, `/?view=${view}&theme=${theme}`, false);
        pictures.push({ about: `${view}, ${width} x ${height}, ${theme}`, width, bytes });
        await page.close();
      }
    await sheet(browser, view, pictures);
  });

for (const [state, { before, addresses, waits = false }] of Object.entries(STATES))
  test(state, async ({ browser }) => {
    const pictures: Picture[] = [];
    for (const theme of THEMES)
      for (const [width, height] of [SIZES[0], SIZES[2]])
        for (const address of addresses) {
          const page = await browser.newPage({ viewport: { width, height } });
          await before?.(page);
          const bytes = await picture(page, `${address}${address.includes("?") ? "&" : "?"}theme=${theme}`, waits);
          pictures.push({ about: `${state}: ${address}, ${width} x ${height}, ${theme}`, width, bytes });
          await page.unrouteAll({ behavior: "ignoreErrors" });
          await page.close();
        }
    await sheet(browser, state, pictures);
  });
