/** Many of a kind: what the page lists of them stays few elements, and what is not listed is found by typing. */
import type { Page } from "@playwright/test";
import { stored, TAKEN, WINDOW } from "./known.ts";
import { otlp } from "./otlp.ts";
import { at, expect, test } from "./stack.ts";

/** Where no other flow looks: unfiltered views of CPU time in the last weeks would have all of these. */
const LONG_AGO = TAKEN - 20 * 86_400_000;
const TYPE = "many";
const THEN = { from: LONG_AGO - 10_000, until: LONG_AGO + 10_000 };

const elements = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);

test("of 100,000 services a few are listed, and any is found by typing", async ({ page, request }) => {
  // A sender may have 20,000 values of a label within an hour.
  const [senders, each] = [5, 20_000];
  const end = `${process.pid}-${TAKEN}`;
  for (let sender = 0; sender < senders; sender++) {
    const stacks = Array.from({ length: each }, (_, i) => ({
      frames: [0],
      samples: 1,
      of: { "service.name": `many-${sender * each + i}-${end}` },
    }));
    const answer = await request.post("/v1development/profiles", {
      headers: { "content-type": "application/x-protobuf" },
      data: Buffer.from(
        otlp({
          service: "many",
          node: `many-${sender}-${end}`,
          type: TYPE,
          at: LONG_AGO,
          frames: [{ name: "main" }],
          stacks,
        }),
      ),
    });
    expect(answer.status(), await answer.text()).toBe(200);
    expect(answer.headers()["stakeout-rejected-samples"] ?? "0").toBe("0");
  }
  const wanted = `many-${senders * each - 7}-${end}`;
  await page.goto(at(THEN, { type: TYPE, query: `{service=~"many-.*-${end}"}`, rank: "service", pane: "table" }));
  await expect(page.getByRole("grid", { name: "Ranked by service" })).toBeVisible();
  expect(await elements(page)).toBeLessThan(2_000);
  const box = page.getByTestId("query");
  const offers = page.getByRole("listbox", { name: "Suggestions" });
  await box.fill("");
  await box.pressSequentially('{service="');
  await expect(offers.getByRole("option").first()).toBeVisible();
  expect(await offers.getByRole("option").count()).toBeLessThanOrEqual(200);
  await expect(offers.getByRole("option", { name: wanted, exact: true })).toHaveCount(0);
  await box.pressSequentially(wanted.slice(0, -2));
  await offers.getByRole("option", { name: wanted, exact: true }).click();
  await expect(page.getByRole("navigation", { name: "What is selected" })).toContainText(wanted);
  expect(await elements(page)).toBeLessThan(2_000);
});

test("of 10,000 markers the axis has a few dozen signs, and the list is searched", async ({ page, request }) => {
  const { query } = await stored(request, "marked", [{ frames: [{ name: "main" }], samples: 9 }]);
  // What the server answers of 10,000: the newest 2,000, and how many the others are. To send so many takes it minutes,
  // a sync of the disk for each.
  await page.route("**/api/v1/markers?*", (route) =>
    route.fulfill({
      json: {
        ...{ query, ...WINDOW, complete: false, uncounted: [] },
        older: Array.from({ length: 100 }, (_, i) => ({
          ...{ from: WINDOW.from + i * 100, until: WINDOW.from + (i + 1) * 100 },
          counts: { note: 79, version: 1 },
        })),
        markers: Array.from({ length: 2_000 }, (_, i) => ({
          ...{ id: `m${i}`, kind: "note", time: TAKEN + i * 5, title: `deploy number ${i}.`, text: "" },
          labels: { service: "marked" },
        })),
      },
    }),
  );
  await page.goto(at(WINDOW, { query: query ?? "" }));
  const signs = page.getByTestId("markers").locator(".marker");
  await expect(signs.first()).toBeVisible();
  expect(await signs.count()).toBeLessThan(60);
  await signs.last().click();
  await expect(page.getByTestId("marker-panel").getByRole("listitem").first()).toBeVisible();
  expect(await page.getByTestId("marker-panel").getByRole("listitem").count()).toBeLessThanOrEqual(50);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /^Markers \(10.000\)/ }).click();
  const list = page.getByTestId("marker-list");
  const listed = list.locator("ol > li");
  await expect(list.getByTestId("older-markers")).toContainText(/8.000 older ones/);
  await expect(listed).toHaveCount(100);
  // Not among the hundred that are listed, but among those that the server told.
  await list.getByRole("searchbox").fill("number 1500.");
  await expect(listed).toHaveCount(1);
  await expect(list).toContainText("deploy number 1500.");
});
