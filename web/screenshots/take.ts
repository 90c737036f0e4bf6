/**
 * The first screen of each view, the states that a person meets, and scenes of `cargo xtask demo`: sheets of pictures
 * to be looked at, and those of the README.
 * In: `STAKEOUT_URL`. Out: a sheet for each view, state and scene, in `sheets/` beside this file; pictures beside it.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type APIRequestContext, type Browser, expect, type Page, test } from "@playwright/test";
import { fleet } from "../e2e/fleet.ts";
import { CHOICES } from "../src/state/address/url.ts";

const SHEETS = join(import.meta.dirname, "sheets");
const SIZES = [
  [1440, 900],
  [1280, 720],
  [390, 844],
] as const;
const THEMES = ["light", "dark"] as const;
/** Waits, with the graph of who ended them above their own. */
const WOKEN = "type=off_cpu&woken=1";
/** Each has a sheet of its own: a view by its name in the address, `sheets/threads.jpg`, what else fills a screen. */
const FIRST: readonly (readonly [name: string, address: string])[] = [
  ...(CHOICES.view ?? []).map((view) => [view, `/?view=${view}`] as const),
  ["threads by process", "/?view=threads&by=process"],
  ["woken by", `/?${WOKEN}`],
];
const KUBELET = 'query={service="kubelet"}';
const EMPTY = "from=0&until=60000";

/** What a state does before the page is opened, and the addresses that show it. */
const STATES: Record<string, { before?: (page: Page) => Promise<unknown>; addresses: string[]; waits?: boolean }> = {
  empty: {
    addresses: [
      `/?${EMPTY}`,
      "/?view=compare&query={service=%22nobody%22}",
      `/?view=heatmap&${EMPTY}`,
      `/?view=timeline&${EMPTY}`,
      `/?view=threads&${EMPTY}`,
      `/?${WOKEN}&${EMPTY}`,
    ],
  },
  loading: {
    before: (page) => page.route("**/api/v1/**", () => {}),
    addresses: ["/", "/?view=compare", "/?view=threads", `/?${WOKEN}`, "/?view=nodes"],
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
    addresses: ["/", "/?view=compare", "/?view=threads", `/?${WOKEN}`, "/?view=nodes"],
  },
  "one process": {
    addresses: [
      `/?${KUBELET}`,
      `/?view=compare&${KUBELET}`,
      `/?view=timeline&${KUBELET}`,
      `/?view=threads&by=thread&${KUBELET}`,
      `/?${WOKEN}&${KUBELET}`,
    ],
  },
  "three warnings": {
    before: warn,
    addresses: ["/?more=data", "/?view=compare&more=data", `/?${WOKEN}&more=data`],
  },
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

for (const [name, address] of FIRST)
  test(name, async ({ browser }) => {
    const pictures: Picture[] = [];
    for (const [width, height] of SIZES)
      for (const theme of THEMES) {
        const page = await browser.newPage({ viewport: { width, height } });
        const bytes = await picture(page, `${address}&theme=${theme}`, false);
        pictures.push({ about: `${name}, ${width} x ${height}, ${theme}`, width, bytes });
        await page.close();
      }
    await sheet(browser, name, pictures);
  });

for (const [state, { before, addresses, waits = false }] of Object.entries(STATES))
  test(state, async ({ browser }) => {
    const pictures: Picture[] = [];
    for (const theme of THEMES)
      for (const [width, height] of SIZES)
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

/** A scene's address over the last minute in which its service ran. */
interface View {
  about: string;
  service: string;
  more: Record<string, string>;
  /** The README's, by size and theme: `1440 light`. */
  kept?: Record<string, string>;
}

const MACHINES = '{service="jobs-machines"}';
const PODS = '{service="jobs-pods"}';
const SCENES: Record<string, readonly View[]> = {
  shop: [
    {
      about: "user and system time apart, and what compresses",
      service: "shop-archive",
      more: { apart: "1", colour: "kind", match: "/deflate|longest_match|zlib/" },
    },
    {
      about: "the search, and the frame of the shop's own code",
      service: "shop-search",
      more: { query: '{service=~"shop-.*|.kernel."}', apart: "1", colour: "kind", frame: "shop.Catalogue.cheapest" },
      kept: { "1440 light": "shop-light.png" },
    },
  ],
  jobs: [
    { about: "both sides", service: "jobs-pods", more: { query: '{service=~"jobs-.*"}', colour: "kind" } },
    {
      about: "pods beside machines",
      service: "jobs-pods",
      more: { view: "compare", query: PODS, baseQuery: MACHINES },
      kept: { "1440 dark": "jobs-dark.png" },
    },
  ],
};

/** The last minute of a service, without the second in which it ended. */
async function windowOf(request: APIRequestContext, service: string): Promise<Record<string, string>> {
  const query = `SELECT max(ts_ns) / 1000000 FROM samples WHERE service = '${service}'`;
  const answer = await request.post("/api/v1/sql", { data: { query } });
  const [[last]] = ((await answer.json()) as { rows: [[number | null]] }).rows;
  expect(last, `${service} has not run: play its scene`).not.toBeNull();
  const until = Number(last) - 1_000;
  return { from: String(until - 59_000), until: String(until) };
}

for (const [scene, views] of Object.entries(SCENES))
  test(`scene ${scene}`, async ({ browser, request }) => {
    const pictures: Picture[] = [];
    for (const { about, service, more, kept = {} } of views)
      for (const theme of THEMES)
        for (const [width, height] of [SIZES[0], SIZES[2]]) {
          const { from = "", until = "" } = await windowOf(request, service);
          const base = more.baseQuery === undefined ? {} : { baseFrom: from, baseUntil: until };
          const page = await browser.newPage({ viewport: { width, height } });
          const bytes = await picture(
            page,
            `/?${new URLSearchParams({ from, until, ...base, ...more, theme })}`,
            false,
          );
          const name = kept[`${width} ${theme}`];
          if (name !== undefined) await page.screenshot({ path: join(import.meta.dirname, name) });
          pictures.push({ about: `${about}, ${width} x ${height}, ${theme}`, width, bytes });
          await page.close();
        }
    await sheet(browser, `scene-${scene}`, pictures);
  });
