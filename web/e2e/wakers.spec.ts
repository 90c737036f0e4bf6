/** Who ended waits, where it is known by construction whose each of them is, and of which nobody is told. */
import { readFileSync } from "node:fs";
import type { APIRequestContext, Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { graphs, TAKEN, WINDOW } from "./known.ts";
import { otlp, PERIOD_NS } from "./otlp.ts";
import { askAnew, at, expect, parameter, placeOf, pointAt, test } from "./stack.ts";

/** CSS pixels. */
const ROW = 19;
/** Ids of threads are a node's own. */
const NODE = `wakers-${process.pid}-${TAKEN}`;
const WAITS = { type: "off_cpu", query: `{node="${NODE}"}`, group: "none" };

let made: Promise<unknown> | null = null;

/** Of three waits of 50 ms two are in `take`, which two threads ended, and one is in `idle`: nobody is known of it. */
function stored(request: APIRequestContext): Promise<unknown> {
  const send = async (batch: Omit<Parameters<typeof otlp>[0], "node" | "at">) => {
    const answer = await request.post("/v1development/profiles", {
      headers: { "content-type": "application/x-protobuf" },
      data: Buffer.from(otlp({ ...batch, node: NODE, at: TAKEN })),
    });
    expect(answer.status(), await answer.text()).toBe(200);
  };
  const of = { "wait.length": PERIOD_NS };
  const wait = (frame: number, thread: number) => ({
    frames: [frame, 0],
    samples: 1,
    times: [TAKEN + thread * 100],
    of: { ...of, "thread.id": thread },
  });
  const woke = (frame: number, name: string, thread: number) => ({
    frames: [frame, 0],
    samples: 1,
    times: [TAKEN + thread * 100],
    of: { ...of, "woken.tid": thread, "thread.name": name },
  });
  made ??= Promise.all([
    send({
      service: "waits",
      type: "off_cpu",
      frames: [{ name: "main" }, { name: "take" }, { name: "idle" }],
      stacks: [wait(1, 1), wait(1, 2), wait(2, 3)],
    }),
    send({
      service: "wakes",
      type: "wake_up",
      frames: [{ name: "main" }, { name: "unlock" }, { name: "post" }],
      stacks: [woke(1, "writer", 1), woke(2, "reader", 2)],
    }),
  ]);
  return made;
}

test.beforeEach(async ({ request }) => {
  await stored(request);
});

function parts(page: Page) {
  const above = page.getByTestId("woken");
  return {
    above,
    wakers: above.getByTestId("flamegraph"),
    known: above.getByTestId("woken-known"),
    waits: page.getByTestId("waiting").getByTestId("flamegraph"),
  };
}

test("the wakers of what is zoomed stand above it, with what is not known of them", async ({ page }) => {
  await page.goto(at(WINDOW, { ...WAITS, woken: "1" }));
  const { above, wakers, known, waits } = parts(page);
  await expect(known).toHaveText(/^known of 100\s?ms of 150\s?ms \(66\.7\s?%\); of 50\.0\s?ms nobody is known$/);
  // Why nobody is known of the rest is told to keys and fingers, too.
  const why = above.getByRole("button", { name: "Why nobody is known" });
  const reason = above.getByText(/^Waits that go on behind the window have no end yet/);
  await expect(reason).toHaveCount(0);
  await why.focus();
  await page.keyboard.press("Enter");
  await expect(reason).toBeVisible();
  expect(await serious(page)).toEqual([]);
  await why.click();
  await expect(reason).toHaveCount(0);
  // Both roots are as wide as each other, and meet: the upper graph stands on its head.
  const [upper, lower] = [await placeOf(wakers), await placeOf(waits)];
  expect(Math.abs(upper.width - lower.width)).toBeLessThanOrEqual(1);
  expect(lower.y - (upper.y + upper.height)).toBeLessThan(ROW);
  const root = Math.floor(upper.height / ROW) * ROW - 9;
  const tip = await pointAt(wakers, { x: 60, y: root }, "all of these waits, by who ended them");
  await expect(tip).toContainText("150");
  await page.mouse.move(0, 0);
  expect(await serious(page)).toEqual([]);

  // `idle` has a third of the width, before `take`: nobody is known.
  await waits.click({ position: { x: lower.width / 6, y: 2 * ROW + 9 } });
  await expect.poll(() => parameter(page, "focus")).toBe("main;idle");
  await expect(above).toContainText("Nobody is known to have ended the waits in idle.");
  expect(await serious(page)).toEqual([]);
  await page.goBack();
  await expect(known).toHaveText(/^known of 100/);
  await waits.click({ position: { x: (lower.width * 5) / 6, y: 2 * ROW + 9 } });
  await expect.poll(() => parameter(page, "focus")).toBe("main;take");
  await expect(known).toHaveText(/^take: known of all 100\s?ms$/);
});

test("a waker is zoomed by itself, by pointer and by keys, and the search is in both", async ({ page }) => {
  await page.goto(at(WINDOW, { ...WAITS, woken: "1", focus: "main;take", match: "unlock" }));
  const { above, wakers, known } = parts(page);
  await expect(known).toHaveText(/^take: known of all/);
  await expect(above.getByTestId("woken-found")).toHaveText(/^found in 50\.0\s?%$/);
  await wakers.focus();
  // The next match is in the stack of the thread that unlocked.
  await page.keyboard.press("n");
  const said = above.getByTestId("selected-waker");
  await expect(said).toHaveText(/^unlock, .*: waits that were ended in it, or in what it calls$/);
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "waker")).toMatch(/;thread=writer;main;unlock$/);
  await expect(above.getByTestId("woken-found")).toHaveText(/^found in 100\s?%$/);
  await page.reload();
  await above.getByTestId("reset-waker").click();
  await expect.poll(() => parameter(page, "waker")).toBe(null);
  // What is zoomed below stays.
  expect(parameter(page, "focus")).toBe("main;take");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(wakers).toBeVisible();
  expect(await serious(page)).toEqual([]);
});

test("who ended waits is offered for them alone, and comes with the files", async ({ page }) => {
  await page.goto(at(WINDOW, { ...WAITS, type: "wake_up", woken: "1" }));
  await expect(page.getByTestId("flamegraph")).toBeVisible();
  await page.waitForLoadState("networkidle");
  await expect(page.getByTestId("woken-tool")).toHaveCount(0);
  await expect(page.getByTestId("woken")).toHaveCount(0);
  await page.goto(at(WINDOW, WAITS));
  const tool = page.getByTestId("woken-tool");
  await tool.focus();
  await page.keyboard.press("Enter");
  await expect(tool).toHaveAttribute("aria-pressed", "true");
  await expect(parts(page).known).toBeVisible();
  await page.getByRole("button", { name: "Download" }).click();
  const link = page.getByRole("link", { name: /^Woken by: Collapsed stacks/ });
  const folded = await (await page.request.get((await link.getAttribute("href")) ?? "")).text();
  const lines = folded
    .trim()
    .split("\n")
    .map((line) => line.split(";").slice(1).join(";"));
  expect(lines.sort()).toEqual(["[no thread];[no waker known] 1", "reader;main;post 1", "writer;main;unlock 1"]);
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page
      .locator(".menu-list")
      .getByRole("button", { name: /^HTML file/ })
      .click(),
  ]);
  expect(readFileSync(await saved.path(), "utf8")).toContain("the graph above: who ended these waits");
  await tool.click();
  await expect(page.getByTestId("woken")).toHaveCount(0);
  await expect(page.getByTestId("flamegraph")).toBeVisible();
});

test("a waker that is selected stays selected in a newer answer", async ({ page }) => {
  await page.goto(at(WINDOW, { ...WAITS, woken: "1", match: "unlock" }));
  const { above, wakers, known } = parts(page);
  await expect(known).toHaveText(/^known of 100/);
  await wakers.focus();
  await page.keyboard.press("n");
  const said = above.getByTestId("selected-waker");
  await expect(said).toHaveText(/^unlock, /);
  const before = await graphs(page);
  await askAnew(page);
  // Both graphs are of newer answers.
  await expect.poll(() => graphs(page)).toBeGreaterThanOrEqual(before + 2);
  await expect(said).toHaveText(/^unlock, /);
});
