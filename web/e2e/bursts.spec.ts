/**
 * A closer look by clicks: the agent of this machine is sampled at a high rate for a while, on one CPU that a program
 * keeps busy, so that what it gives is known by construction.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { APIRequestContext, Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { expect, parameter, test } from "./stack.ts";

interface Burst {
  id: string;
  node: string;
  state: string;
  from_ms: number;
  until_ms: number;
}

const SECONDS = 4;
const told = (page: Page) => page.getByTestId("burst-told");
const newest = (page: Page) => page.getByTestId("bursts").locator("li").first();

let busy: ChildProcess | undefined;

test.describe.configure({ mode: "serial" });

test.beforeAll(() => {
  busy = spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore" });
});

test.afterAll(() => {
  busy?.kill("SIGKILL");
});

/** The node whose agent asks for bursts. */
async function nodeThatCan(request: APIRequestContext): Promise<string> {
  let node = "";
  await expect
    .poll(async () => {
      const { nodes } = (await (await request.get("/api/v1/nodes")).json()) as {
        nodes: { node: string; burst_limit_hz?: number }[];
      };
      node = nodes.find((row) => (row.burst_limit_hz ?? 0) >= 999)?.node ?? "";
      return node;
    })
    .not.toBe("");
  return node;
}

const all = async (request: APIRequestContext) =>
  ((await (await request.get("/api/v1/bursts")).json()) as { bursts: Burst[] }).bursts;

/** Opens the dialog from the node's row. */
async function opened(page: Page, node: string): Promise<void> {
  await page.goto(`/?view=nodes&find=${encodeURIComponent(node)}`);
  const row = page.getByRole("grid", { name: "Table of agents" }).locator("[data-row='0']");
  await expect(row).toContainText(node);
  await row.locator("[role='gridcell']").nth(1).click();
  await page.getByTestId("look-closer").click();
  await expect(page.getByRole("dialog", { name: "Look closer" })).toBeVisible();
  await expect(page.getByTestId("burst-nodes")).toHaveValue(node);
}

/** An agent that had much to do lately refuses, as far as --cpu-limit leaves nothing: it is asked again. */
async function begun(page: Page): Promise<void> {
  await expect(async () => {
    await page.getByTestId("burst-begin").click();
    await expect(newest(page)).toHaveAttribute("data-state", "running", { timeout: 12_000 });
  }).toPass({ intervals: [15_000], timeout: 120_000 });
}

test("a node is looked at more closely, by clicks: waiting, running, ended, and shown", async ({ page, request }) => {
  const node = await nodeThatCan(request);
  const known = async () => (await all(request)).filter(({ state }) => state !== "refused").length;
  const before = await known();
  const states: string[] = [];
  page.on("response", async (answer) => {
    if (!answer.url().endsWith("/api/v1/bursts") || !answer.ok()) return;
    const { bursts } = (await answer.json().catch(() => ({ bursts: [] }))) as {
      bursts: (Burst & { created_ms: number })[];
    };
    const last = bursts.toSorted((a, b) => b.created_ms - a.created_ms)[0];
    if (last !== undefined && states.at(-1) !== last.state) states.push(last.state);
  });
  await opened(page, node);
  await page.getByTestId("burst-cpus").fill("0");
  await page.getByTestId("burst-frequency").fill("400");
  await page.getByTestId("burst-seconds").fill(String(SECONDS));
  // 400 x 1 x 25 µs.
  await expect(page.getByTestId("burst-cost")).toContainText(/^400 Hz × 1 CPU × 25 µs: .* 0\.010 cores/);
  await begun(page);
  await expect(told(page)).toContainText("Asked of 1 node.");
  await expect(newest(page)).toContainText("CPU 0");
  await expect(newest(page)).toContainText(/running, \d/);
  expect(await serious(page)).toEqual([]);
  await expect(newest(page)).toHaveAttribute("data-state", "ended");
  await expect(newest(page)).toContainText("ended: it ran to its end");
  await expect(newest(page)).toContainText(/\d+ samples?, the agent took/);
  expect(states.slice(-3)).toEqual(["waiting", "running", "ended"]);
  expect(await known()).toBe(before + 1);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await serious(page)).toEqual([]);

  // Nothing is under way: nothing is asked any more.
  let asked = 0;
  page.on("request", (one) => {
    if (one.url().includes("/api/v1/bursts")) asked++;
  });
  await page.waitForTimeout(3_000);
  expect(asked).toBe(0);

  await newest(page)
    .getByRole("link", { name: `Show ${node} at that time` })
    .click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
  const { query, from, until } = Object.fromEntries(
    ["query", "from", "until"].map((name) => [name, parameter(page, name)]),
  );
  expect(query).toBe(`{node="${node}",cpu="0"}`);
  expect(Number(until) - Number(from)).toBeGreaterThanOrEqual((SECONDS - 1) * 1000);
  const of = (await all(request)).find((one) => String(Math.floor(one.from_ms)) === from);
  expect(of?.state).toBe("ended");
});

test("one that runs is cancelled, and what can't be is refused in the server's words", async ({ page, request }) => {
  const node = await nodeThatCan(request);
  await opened(page, node);
  await page.getByTestId("burst-seconds").fill("60");
  await page.getByTestId("burst-frequency").fill("200");
  await begun(page);
  await newest(page)
    .getByRole("button", { name: `Cancel the closer look at ${node}` })
    .click();
  await expect(newest(page)).toHaveAttribute("data-state", "cancelled");
  await expect(newest(page)).toContainText("cancelled: it was ended early");

  // What is no number is said by the page, without a question.
  await page.getByTestId("burst-seconds").fill("soon");
  await page.getByTestId("burst-begin").click();
  await expect(told(page)).toContainText("The seconds are a whole number");
});

test.describe("refusals", () => {
  test.use({ allowErrors: [/status of 40[01]/] });

  test("are told in the server's words, and a token is asked for where one is missing", async ({ page, request }) => {
    const node = await nodeThatCan(request);
    const count = (await all(request)).length;
    await opened(page, node);
    await page.getByTestId("burst-frequency").fill("100000");
    await page.getByTestId("burst-begin").click();
    await expect(told(page)).toContainText("`frequency_hz` is 100000");
    await expect(told(page)).toContainText("from 1 to 4999");
    await page.getByTestId("burst-frequency").fill("100");
    await page.getByTestId("burst-cpus").fill("60000");
    await page.getByTestId("burst-begin").click();
    await expect(told(page)).toContainText(`CPU 60000 is not online at ${node}`);
    await expect(page.getByTestId("burst-token")).toHaveCount(0);
    expect(await all(request)).toHaveLength(count);
    expect(await serious(page)).toEqual([]);

    // This server needs none: the answer of one that does.
    const seen: (string | undefined)[] = [];
    await page.route("**/api/v1/bursts", (route) => {
      if (route.request().method() !== "POST") return route.continue();
      seen.push(route.request().headers().authorization);
      return route.fulfill({
        status: 401,
        contentType: "application/json",
        body: JSON.stringify({ error: { code: "unauthorized", message: "this needs a token for bursts", hint: "h" } }),
      });
    });
    await page.getByTestId("burst-begin").click();
    await expect(told(page)).toContainText("this needs a token for bursts");
    await page.getByTestId("burst-token").fill("look-closer");
    await page.getByTestId("burst-begin").click();
    await expect.poll(() => seen).toEqual([undefined, "Bearer look-closer"]);
    expect(page.url()).not.toContain("look-closer");
    expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toContain(
      "look-closer",
    );
    expect(await serious(page)).toEqual([]);
  });
});

test("values and the palette lead to it, with what they know", async ({ page, request }) => {
  const node = await nodeThatCan(request);
  await page.goto("/?by=process&from=now-2m");
  const dots = page.getByTestId("layers").getByRole("button", { name: /^What can be done with process / });
  const name = /process (.*)$/.exec((await dots.first().getAttribute("aria-label")) ?? "")?.[1] ?? "";
  await dots.first().click();
  await page.getByRole("menuitem", { name: /^Look closer/ }).click();
  await expect(page.getByTestId("burst-process")).toHaveValue(name);
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);

  await page.goto(`/?from=now-2m&query=${encodeURIComponent(`{node="${node}",cpu="0"}`)}`);
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").fill("look closer");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("burst-nodes")).toHaveValue(node);
  await expect(page.getByTestId("burst-cpus")).toHaveValue("0");

  await page.goto(`/?from=now-2m&query=${encodeURIComponent('{thread="main",unit="cron.service"}')}`);
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").fill("look closer");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("burst-rest")).toHaveValue('{unit="cron.service",thread="main"}');
});

test.describe("refused", () => {
  // What is refused the browser tells as an error of its own.
  test.use({ allowErrors: [/400/] });

  test("a burst is of what a selector says, and one that no agent knows is refused in words", async ({
    page,
    request,
  }) => {
    const node = await nodeThatCan(request);
    await page.goto(`/?from=now-2m&query=${encodeURIComponent(`{node="${node}",mode="user"}`)}`);
    await page.keyboard.press("Control+k");
    await page.getByTestId("palette").fill("look closer");
    await page.keyboard.press("Enter");
    await page.getByTestId("burst-rest").fill('{mode="user"}');
    await page.getByTestId("burst-seconds").fill("1");
    await page.getByTestId("burst-frequency").fill("200");
    await page.getByTestId("burst-begin").click();
    await expect(told(page)).toContainText("`query` speaks of `mode`");
    await expect(told(page)).toContainText("of processes and threads by service, process, tgid, thread");
  });
});

test("who ended waits is a click away, of the same selection, and leads back", async ({ page }) => {
  const query = '{thread=~"[a-z].*",wait.class!="timer"}';
  await page.goto(`/?${new URLSearchParams({ type: "off_cpu", from: "now-2m", query })}`);
  const way = page.getByTestId("wakers");
  await expect(way).toHaveAttribute("title", /Left out, since nothing is known of it there: wait\.class$/);
  await way.click();
  await expect.poll(() => parameter(page, "type")).toBe("wake_up");
  expect(parameter(page, "query")).toBe('{woken.thread=~"[a-z].*"}');
  await expect(page.getByRole("button", { name: /^Profile type: Who woke/ })).toBeVisible();
  await expect(page.locator(".chart .figures")).toContainText("threads waiting");
  await expect(page.getByTestId("wait-chips").getByRole("listitem")).toHaveCount(0);
  // What is dimmed answers the question before.
  await expect(page.locator('.stale, [aria-busy="true"]')).toHaveCount(0);
  expect(await serious(page)).toEqual([]);
  await way.click();
  await expect.poll(() => parameter(page, "query")).toBe('{thread=~"[a-z].*"}');
  expect(parameter(page, "type")).toBe("off_cpu");
});
