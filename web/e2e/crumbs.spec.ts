/** The menus of what is selected: any value is found by a word of it, and a service is looked at node by node. */
import type { APIRequestContext, Locator, Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { TAKEN, WINDOW } from "./known.ts";
import { otlp } from "./otlp.ts";
import { at, expect, parameter, test } from "./stack.ts";

const END = `${process.pid}-${TAKEN}`;
/** Unfiltered views of CPU time would have all of these. */
const TYPE = "crumbs";
const [FIRST, SECOND] = [`crumbs-a-${END}`, `crumbs-b-${END}`];
const SERVICES = 40;
const service = (i: number) => `crumb-${i}-${END}`;

let made: Promise<void> | null = null;

/** Forty services on one node, the first ones with most samples; on the other one the very first alone. */
function nodes(request: APIRequestContext): Promise<void> {
  made ??= (async () => {
    for (const [node, count] of [
      [FIRST, SERVICES],
      [SECOND, 1],
    ] as const) {
      const stacks = Array.from({ length: count }, (_, i) => ({
        frames: [0],
        samples: 2 * SERVICES - i,
        of: { "service.name": service(i), "process.executable.name": `program-${i}` },
      }));
      const answer = await request.post("/v1development/profiles", {
        headers: { "content-type": "application/x-protobuf" },
        data: Buffer.from(otlp({ service: "crumbs", node, type: TYPE, at: TAKEN, frames: [{ name: "main" }], stacks })),
      });
      expect(answer.status(), await answer.text()).toBe(200);
    }
  })();
  return made;
}

const here = (query: string, more: Record<string, string> = {}) => at(WINDOW, { type: TYPE, query, ...more });

function pathOf(page: Page): { crumb: (label: string) => Locator; values: Locator; field: Locator; said: Locator } {
  const path = page.getByRole("navigation", { name: "What is selected" });
  return {
    crumb: (label) => path.getByRole("button", { name: new RegExp(`^${label} `) }),
    values: path.locator(".siblings").getByRole("button"),
    field: path.getByRole("searchbox"),
    said: path.getByRole("status"),
  };
}

test.beforeEach(({ request }) => nodes(request));

test("any value of a step is found by a word of it, by keys alone", async ({ page }) => {
  await page.goto(here(`{node="${FIRST}",service="${service(3)}"}`));
  const { crumb, values, field, said } = pathOf(page);
  await crumb("service").press("Enter");
  await expect(values).toHaveCount(30);
  await expect(said).toHaveText("The largest 30 values; type to find others.");
  await expect(values.filter({ hasText: service(39) })).toHaveCount(0);
  await expect(field).toBeFocused();
  await page.keyboard.type("no-such-service");
  await expect(said).toHaveText("No service here has “no-such-service” in its name.");
  await expect(values).toHaveCount(0);
  // Enter takes nothing where nothing is found.
  await page.keyboard.press("Enter");
  await field.fill("RUMB-39-");
  await expect(values).toHaveCount(1);
  expect(await serious(page)).toEqual([]);
  await page.keyboard.press("ArrowDown");
  await expect(values).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect(field).toBeFocused();
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "query")).toBe(`{node="${FIRST}",service="${service(39)}"}`);
  await expect(field).toHaveCount(0);
});

test("a field stands where there are many values alone; Escape closes it", async ({ page }) => {
  await page.goto(here(`{node="${FIRST}",service="${service(3)}"}`));
  const { crumb, values, field } = pathOf(page);
  await crumb("node").click();
  await expect(values).toHaveCount(1);
  await expect(field).toHaveCount(0);
  await page.keyboard.press("Escape");
  await crumb("service").click();
  await expect(field).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(field).toHaveCount(0);
  await expect(crumb("service")).toBeFocused();
});

test("a service is looked at node by node: the rest of the selection and the chart stay", async ({ page }) => {
  await page.goto(here(`{service="${service(0)}",node="${FIRST}"}`, { by: "process" }));
  const path = pathOf(page);
  await path.crumb("node").click();
  await expect(path.values).toHaveCount(2);
  await path.values.filter({ hasText: SECOND }).click();
  await expect.poll(() => parameter(page, "query")).toBe(`{service="${service(0)}",node="${SECOND}"}`);
  expect(parameter(page, "by")).toBe("process");
  await path.crumb("node").click();
  await page.getByRole("button", { name: "Any node" }).click();
  await expect.poll(() => parameter(page, "query")).toBe(`{service="${service(0)}"}`);
  expect(parameter(page, "by")).toBe("process");
});

test("a step's other values have the menu of all values: one becomes the baseline of what is selected", async ({
  page,
}) => {
  const query = `{service="${service(0)}",node="${FIRST}"}`;
  await page.goto(here(query, { by: "process" }));
  const { crumb, values } = pathOf(page);
  await crumb("node").click();
  await values.filter({ hasText: SECOND }).click({ button: "right" });
  const menu = page.getByRole("menu", { name: `of node ${SECOND}` });
  await expect(menu.getByRole("menuitem", { name: "Exclude" })).toBeVisible();
  await expect(values).toHaveCount(0);
  await page.keyboard.press("Escape");
  await expect(menu).toHaveCount(0);
  await expect(crumb("node")).toBeFocused();
  await page.keyboard.press("Enter");
  await values.filter({ hasText: SECOND }).click({ button: "right" });
  await menu.getByRole("menuitem", { name: /^Make baseline/ }).click();
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  expect(parameter(page, "query")).toBe(query);
  expect(parameter(page, "baseQuery")).toBe(`{service="${service(0)}",node="${SECOND}"}`);
});

test("a container is a step, and called by its service and image", async ({ page, request }) => {
  const node = `crumbs-c-${END}`;
  const [cache, queue] = ["a1b2c3d4e5f6".padEnd(64, "0"), "b2c3d4e5f6a1".padEnd(64, "0")];
  const of = (name: string, id: string, image: string) => ({
    ...{ "service.name": name, "process.executable.name": name },
    ...{ "container.id": id, "container.image.name": image },
  });
  const stacks = [
    { frames: [0], samples: 40, of: of("cache", cache, "docker.io/library/redis:7.2") },
    { frames: [0], samples: 20, of: of("queue", queue, "registry.example:5000/team/rabbit:4.1@sha256:00ff") },
  ];
  const answer = await request.post("/v1development/profiles", {
    headers: { "content-type": "application/x-protobuf" },
    data: Buffer.from(otlp({ service: "crumbs", node, type: TYPE, at: TAKEN, frames: [{ name: "main" }], stacks })),
  });
  expect(answer.status(), await answer.text()).toBe(200);
  await page.goto(here(`{node="${node}"}`, { by: "container" }));
  const layers = page.getByTestId("layers");
  await expect(layers).toContainText("cache · redis:7.2 (a1b2c3d4e5f6)");
  await layers.getByRole("button", { name: "Only container cache · redis:7.2 (a1b2c3d4e5f6)" }).click();
  const { crumb, values } = pathOf(page);
  await expect(crumb("container")).toContainText("cache · redis:7.2 (a1b2c3d4e5f6)");
  await crumb("container").click();
  await values.filter({ hasText: "queue · rabbit:4.1 (b2c3d4e5f6a1)" }).click();
  await expect.poll(() => parameter(page, "query")).toBe(`{node="${node}",container="${queue}"}`);
  await crumb("container").click();
  await page.getByRole("button", { name: "Any container" }).click();
  await expect.poll(() => parameter(page, "query")).toBe(`{node="${node}"}`);
});

test.describe("by touch", () => {
  test.use({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } });

  test("a value is found by a word, and no keyboard covers the others before", async ({ page }) => {
    await page.goto(here(`{node="${FIRST}",service="${service(3)}"}`));
    const { crumb, values, field } = pathOf(page);
    await crumb("service").tap();
    await expect(values).toHaveCount(30);
    await expect(field).not.toBeFocused();
    await field.tap();
    await page.keyboard.type("crumb-38-");
    await expect(values).toHaveCount(1);
    await values.tap();
    await expect.poll(() => parameter(page, "query")).toBe(`{node="${FIRST}",service="${service(38)}"}`);
  });
});
