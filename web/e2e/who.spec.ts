/** Who changed, and whose time a frame is: by labels, on samples that are known by construction. */
import type { APIRequestContext } from "@playwright/test";
import { course, drawn, TAKEN, WINDOW } from "./known.ts";
import { type Frame, otlp } from "./otlp.ts";
import { at, comparison, expect, parameter, placeOf, READERS, test } from "./stack.ts";

const prog = (name: string): Frame => ({ name, module: "/opt/bin/prog" });

/** Eight seconds each: what grows walks ten times as much in the second half, what is steady does the same. */
async function halves(request: APIRequestContext, from: number) {
  const frames = [prog("main"), prog("housekeeping"), prog("walk")];
  const second = (samples: number) => ({ frames, samples });
  const grows = [...Array.from({ length: 8 }, () => second(4)), ...Array.from({ length: 8 }, () => second(40))];
  const steady = Array.from({ length: 16 }, () => ({ frames: [prog("main"), prog("sync")], samples: 20 }));
  await course(request, "who-grows", from, grows);
  await course(request, "who-steady", from, steady);
  const end = `${process.pid}-${from}`;
  const query = `{service=~"who-(grows|steady)-${end}"}`;
  const sides = { before: { from, until: from + 8_000 }, after: { from: from + 8_000, until: from + 16_000 } };
  return { end, query, sides: { busy: "", ...sides } };
}

test("both sides by service, judged: what grew is marked, what is steady is grey, CPU time of both", async ({
  page,
  windows,
  request,
}) => {
  const { end, query, sides } = await halves(request, windows.before.from);
  await page.goto(comparison(sides, { query, tab: "service" }));
  const rows = page.getByRole("grid", { name: "Both windows by service" }).locator(".vtable-row");
  await expect(rows).toHaveCount(2);
  const grown = rows.filter({ hasText: `who-grows-${end}` });
  await expect(grown).toHaveClass(/grew/);
  await expect(rows.filter({ hasText: `who-steady-${end}` })).toHaveClass(/same/);
  // Of 32 and 320 samples, each a twentieth of a second.
  await expect(grown.getByRole("gridcell").nth(1)).toHaveText(/^1\.60?\s*s$/);
  await expect(grown.getByRole("gridcell").nth(2)).toHaveText(/^16(\.0)?\s*s$/);
  await expect(page.getByTestId("judged")).toHaveText("1 of 2 changed; false discovery rate of this table: 5 %");
  await grown.click();
  await expect.poll(() => parameter(page, "query")).toContain(`service="who-grows-${end}"`);
});

test("the cause is the lowest frame; it opens to the callers that changed because they call it", async ({
  page,
  windows,
  request,
}) => {
  const { query, sides } = await halves(request, windows.before.from);
  await page.goto(comparison(sides, { query }));
  await expect(page.getByTestId("verdict")).toContainText(/1 cause \(\d+ of \d+ frames?\): walk/);
  const causes = page.getByTestId("changes");
  await expect(causes.locator(".cause-name")).toHaveCount(1);
  const opens = causes.getByRole("button", { name: "walk: how it is told" });
  await expect(opens).toHaveAttribute("aria-expanded", "true");
  await expect(causes.getByRole("list", { name: /because they call it/ }).getByRole("button")).toHaveText([
    "main",
    "housekeeping",
    "walk",
  ]);
  await opens.click();
  await expect(opens).toHaveAttribute("aria-expanded", "false");
  const own = page.getByTestId("own-changes").getByRole("listitem");
  await expect(own).toHaveCount(1);
  await expect(own).toContainText("walk");
});

test("whose time a frame is: its function's samples, and no namesake's", async ({ page, request }) => {
  const end = `${process.pid}-${TAKEN}`;
  const frames = [prog("main"), prog("copy"), { name: "copy", module: "/opt/lib/other.so" }];
  for (const [service, samples, other] of [
    ["spent-a", 30, 500],
    ["spent-b", 10, 0],
  ] as const) {
    const stacks = [{ frames: [1, 0], samples }, ...(other > 0 ? [{ frames: [2, 0], samples: other }] : [])];
    const answer = await request.post("/v1development/profiles", {
      headers: { "content-type": "application/x-protobuf" },
      data: Buffer.from(otlp({ service: `${service}-${end}`, at: TAKEN, frames, stacks })),
    });
    expect(answer.status(), await answer.text()).toBe(200);
  }
  await page.goto(at(WINDOW, { query: `{service=~"spent-.-${end}"}` }));
  const box = await drawn(page);
  await page.getByRole("tab", { name: "Spent by" }).click();
  const rows = page.getByRole("region", { name: "Spent by service" }).locator(".spent-row");
  await expect(rows.first()).toContainText(/spent-a-.*98/);
  // Siblings are in the order of their names; both are called copy.
  await page.getByTestId("flamegraph").press("ArrowDown");
  for (let i = 0; i < 2; i++) await page.keyboard.press("ArrowDown");
  await page.goto(at(WINDOW, { query: `{service=~"spent-.-${end}"}`, tab: "functions" }));
  expect(box.width).toBeGreaterThan(100);
  const function_ = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row").filter({ hasText: "prog" });
  await function_.filter({ hasText: "copy" }).click();
  await page.getByRole("tab", { name: "Spent by" }).click();
  await expect(rows.nth(0)).toContainText(/spent-a-.*75/);
  await expect(rows.nth(1)).toContainText(/spent-b-.*25/);
  await rows.nth(1).click();
  await expect.poll(() => parameter(page, "query")).toContain(`service="spent-b-${end}"`);
});

test("whose time a frame is on both sides of a comparison, with cores and the change", async ({ page, request }) => {
  const end = `${process.pid}-${TAKEN}`;
  const frames = [prog("main"), prog("copy")];
  // Side A and side B are two nodes' worth of services: one is on both, one on either.
  for (const [service, samples] of [
    ["who-a-left", 30],
    ["who-a-right", 10],
    ["who-b-right", 40],
  ] as const) {
    const answer = await request.post("/v1development/profiles", {
      headers: { "content-type": "application/x-protobuf" },
      data: Buffer.from(
        otlp({
          service: `${service}-${end}`,
          at: TAKEN,
          frames,
          stacks: [
            { frames: [1, 0], samples },
            { frames: [0], samples: 5 },
          ],
        }),
      ),
    });
    expect(answer.status(), await answer.text()).toBe(200);
  }
  await page.goto(
    at(WINDOW, {
      view: "compare",
      query: `{service=~"who-.-right-${end}"}`,
      baseQuery: `{service=~"who-a-.*-${end}"}`,
      baseFrom: String(WINDOW.from),
      baseUntil: String(WINDOW.until),
      frame: "main;copy",
      tab: "spent",
    }),
  );
  await expect(page.getByTestId("spent")).toContainText("All frames of copy");
  const row = (name: string) =>
    page.getByRole("region", { name: "Spent by service" }).getByRole("row", { name: new RegExp(`^${name}`) });
  // A sample is a twentieth of a second, in a window of twenty.
  await expect(row("who-a-left").getByRole("cell")).toHaveText([/^0\.075 75/, /^0 0/, /^−0\.075/]);
  await expect(row("who-a-right").getByRole("cell")).toHaveText([/^0\.025 25/, /^0\.025 20/, /^0/]);
  await expect(row("who-b-right").getByRole("cell")).toHaveText([/^0 0/, /^0\.100 80/, /^\+0\.100/]);
  // All of each side where no frame is selected.
  await page.getByRole("button", { name: "All samples" }).click();
  await expect(row("who-a-left").getByRole("cell").first()).toHaveText(/^0\.087 70|^0\.088 70/);
  await row("who-b-right")
    .getByRole("button", { name: /^who-b-right/ })
    .click();
  await expect.poll(() => parameter(page, "query")).toContain(`service="who-b-right-${end}"`);
});

test("what changed most since the window before, yesterday and last week", async ({ page, windows }) => {
  await page.goto(at(windows.after, { tab: "changed", rank: "process" }));
  const table = page.getByRole("grid", { name: "Both windows by process" });
  await expect(table.locator(".vtable-row").first()).toBeVisible();
  await page.getByRole("button", { name: "Yesterday" }).click();
  await expect.poll(() => parameter(page, "against")).toBe("day");
  await expect(page.getByText("No samples there")).toBeVisible();
  await page.goBack();
  await expect(table.locator(".vtable-row").first()).toBeVisible();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  const length = windows.after.until - windows.after.from;
  await expect.poll(() => parameter(page, "baseFrom")).toBe(String(windows.after.from - length));
});

test("a value leads down: the chart goes on to the next label, steps have menus of siblings", async ({
  page,
  windows,
}) => {
  await page.goto(at(windows.after, { by: "service", query: READERS }));
  const name = /^Only service /;
  await page.getByTestId("layers").getByRole("button", { name }).first().click();
  await expect.poll(() => parameter(page, "by")).toMatch(/^(pod|unit|process|thread)$/);
  const path = page.getByRole("navigation", { name: "What is selected" });
  await expect(path.getByRole("button", { name: /^service / })).toBeVisible();
  await path.getByRole("button", { name: /^service / }).click();
  await expect(path.locator(".siblings [aria-pressed=true]")).toHaveCount(1);
  await page.keyboard.press("Escape");
  await path.getByRole("button", { name: "All", exact: true }).click();
  await expect.poll(() => parameter(page, "query")).toBeNull();
});

test("a value leads down in a comparison too, which stays the one it is", async ({ page, windows, request }) => {
  const { end, query, sides } = await halves(request, windows.before.from);
  await page.goto(comparison(sides, { query, tab: "service", by: "service" }));
  const names = ["from", "until", "baseFrom", "baseUntil"] as const;
  const before = names.map((name) => parameter(page, name));
  const rows = page.getByRole("grid", { name: "Both windows by service" }).locator(".vtable-row");
  await rows.filter({ hasText: `who-grows-${end}` }).click();
  await expect.poll(() => parameter(page, "query")).toContain(`service="who-grows-${end}"`);
  await expect.poll(() => parameter(page, "by")).toMatch(/^(pod|unit|process|thread)$/);
  expect(names.map((name) => parameter(page, name))).toEqual(before);
  expect([parameter(page, "view"), parameter(page, "baseQuery")]).toEqual(["compare", null]);
});

test("one menu on a value: by its button, by the right button, by keys", async ({ page, windows }) => {
  await page.goto(at(windows.after, { by: "process", query: READERS }));
  const value = page.getByTestId("layers").getByRole("button", { name: `Only process ${windows.busy}` });
  const menu = page.getByRole("menu");
  const items = ["Filter", "Exclude", "Compare with the rest", /^Make baseline/, "Group by process", "Copy"];
  await value.click({ button: "right" });
  for (const item of items) await expect(menu.getByRole("menuitem", { name: item })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(menu).toHaveCount(0);
  await expect(value).toBeFocused();
  await page.getByRole("button", { name: `What can be done with process ${windows.busy}` }).press("Enter");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "query")).toContain(`process!="${windows.busy}"`);
  // So it does in a table by a label.
  await page.goto(at(windows.after, { query: READERS, rank: "process", tab: "functions" }));
  const row = page.getByRole("grid", { name: "Ranked by process" }).locator(".vtable-row");
  await row.filter({ hasText: windows.busy }).click({ button: "right" });
  await menu.getByRole("menuitem", { name: "Compare with the rest" }).click();
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  await expect.poll(() => parameter(page, "query")).toContain(`process="${windows.busy}"`);
});

test.describe("by touch", () => {
  test.use({ hasTouch: true });

  test("a long press on a row of a table opens the menu of its value", async ({ page, windows }) => {
    // Safari on phones tells of no wish for a menu: here no browser does.
    await page.addInitScript(() => {
      addEventListener(
        "contextmenu",
        (event) => {
          event.preventDefault();
          event.stopImmediatePropagation();
        },
        true,
      );
    });
    await page.goto(at(windows.after, { query: READERS, rank: "process", tab: "functions" }));
    const rows = page.getByRole("grid", { name: "Ranked by process" }).locator(".vtable-row");
    const { x, y, width, height } = await placeOf(rows.filter({ hasText: windows.busy }));
    const menu = page.getByRole("menu");
    const finger = await page.context().newCDPSession(page);
    const down = { type: "touchStart" as const, touchPoints: [{ x: x + width / 3, y: y + height / 2 }] };
    const up = { type: "touchEnd" as const, touchPoints: [] };
    await finger.send("Input.dispatchTouchEvent", down);
    await expect(menu.getByRole("menuitem", { name: "Compare with the rest" })).toBeVisible();
    await finger.send("Input.dispatchTouchEvent", up);
    // The finger that goes takes nothing.
    await expect(menu).toBeVisible();
    expect(parameter(page, "query")).toBe(READERS);
    await menu.getByRole("menuitem", { name: "Exclude" }).tap();
    await expect.poll(() => parameter(page, "query")).toContain(`process!="${windows.busy}"`);
    await expect(menu).toHaveCount(0);
    // A tap is a click: it takes the row.
    await page.goto(at(windows.after, { query: READERS, rank: "process", tab: "functions" }));
    await rows.filter({ hasText: windows.busy }).tap();
    await expect.poll(() => parameter(page, "query")).toContain(`process="${windows.busy}"`);
  });
});
