/** Ctrl K: one box over views, values, functions and actions, all by keyboard. */
import type { Page } from "@playwright/test";
import { seriousInBoth } from "./axe.ts";
import { drawn, stored, WINDOW } from "./known.ts";
import { at, comparison, expect, parameter, test } from "./stack.ts";

const prog = (name: string) => ({ name, module: "prog" });

async function opened(page: Page) {
  await page.keyboard.press("Control+k");
  const field = page.getByTestId("palette");
  await expect(field).toBeFocused();
  return field;
}

test("views, values, functions and actions are a few letters away, also from a field", async ({ page, request }) => {
  const query = await stored(request, "palette", [{ frames: [prog("main"), prog("walk_palette")], samples: 40 }]);
  const service = /service="([^"]+)"/.exec(query.query ?? "")?.[1] ?? "";
  expect(service).not.toBe("");
  await page.goto(at(WINDOW, query));
  await drawn(page);
  await page.getByTestId("query").focus();

  let field = await opened(page);
  await field.fill("utc");
  await field.press("Enter");
  await expect.poll(() => parameter(page, "tz")).toBe("utc");
  await expect(field).toHaveCount(0);

  field = await opened(page);
  await field.fill("walk_pal");
  await expect(page.getByRole("option", { name: "walk_palette function" })).toBeVisible();
  await field.press("Enter");
  await expect.poll(() => parameter(page, "match")).toContain("walk_palette");

  field = await opened(page);
  await field.fill("Show everything");
  await field.press("Enter");
  await expect.poll(() => parameter(page, "query")).toBeNull();

  field = await opened(page);
  await field.fill(service);
  // What was looked at last has the same words.
  await page.getByRole("option", { name: `service="${service}" value` }).click();
  await expect.poll(() => parameter(page, "query")).toBe(`{service="${service}"}`);
  // By service the chart would be one layer.
  await expect.poll(() => parameter(page, "by")).toMatch(/^(pod|unit|process|thread)$/);

  field = await opened(page);
  await field.fill("heat");
  await field.press("Enter");
  await expect.poll(() => parameter(page, "view")).toBe("heatmap");
  await page.goBack();
  await expect.poll(() => parameter(page, "view")).toBeNull();
});

test("a key that is pressed before the first picture counts", async ({ page, windows }) => {
  await page.addInitScript(() => {
    const key = new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true });
    document.addEventListener("DOMContentLoaded", () => document.dispatchEvent(key));
  });
  await page.goto(at(windows.after));
  await expect(page.getByTestId("palette")).toBeFocused();
});

test("a key that is pressed as soon as a choice was made opens it again", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  const field = await opened(page);
  await field.fill("utc");
  await field.evaluate(async (element) => {
    element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    // The page draws before its next task, in which the browser tells that the dialog was closed.
    for (let turn = 0; turn < 10; turn += 1) await null;
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }));
  });
  await expect.poll(() => parameter(page, "tz")).toBe("utc");
  await expect(field).toBeFocused();
  await expect(field).toHaveValue("");
});

test("says in words that nothing is called like that; Escape and Ctrl K close it", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  const field = await opened(page);
  await field.fill("zzzz-nothing");
  await expect(page.getByRole("dialog").getByRole("status")).toContainText("Nothing is called “zzzz-nothing”");
  await field.press("Enter");
  await expect(field).toBeVisible();
  await field.press("Escape");
  await expect(field).toHaveCount(0);
  await opened(page);
  await page.keyboard.press("Control+k");
  await expect(field).toHaveCount(0);
});

test("has no serious fault for a screen reader in both themes", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await opened(page);
  expect(await seriousInBoth(page)).toEqual([]);
});

test("a function that ran elsewhere is offered, and it is said that the selection has none of it", async ({
  page,
  request,
}) => {
  await stored(request, "elsewhere", [{ frames: [prog("main"), prog("roam_elsewhere")], samples: 40 }]);
  const query = await stored(request, "here", [{ frames: [prog("main"), prog("stay_here")], samples: 40 }]);
  const found = page.getByTestId("found");
  await page.goto(at(WINDOW, query));
  await drawn(page);
  const box = page.getByTestId("query");
  await box.fill("roam_else");
  await box.press("Enter");
  await expect(page.getByTestId("selector-fault")).toHaveCount(0);
  await page.getByRole("option", { name: "function, not in this graph: roam_elsewhere" }).click();
  await expect.poll(() => parameter(page, "match")).toBe("/^roam_elsewhere$/");
  await expect(found).toHaveText("not in this selection: roam_elsewhere");
  expect(parameter(page, "query")).toBe(query.query ?? "");

  await page.goto(at(WINDOW, query));
  await drawn(page);
  const field = await opened(page);
  await field.fill("roam_else");
  await page.getByRole("option", { name: "roam_elsewhere function, not in this graph" }).click();
  await expect(found).toHaveText("not in this selection: roam_elsewhere");
  // All that ran then has it.
  await page.getByTestId("query").fill("");
  await page.getByTestId("query").press("Enter");
  await expect(found).toContainText("40 samples");
});

test("a word in the selector offers functions, and never replaces the page", async ({ page, request }) => {
  const query = await stored(request, "words", [{ frames: [prog("main"), prog("crunch_words")], samples: 40 }]);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  const box = page.getByTestId("query");
  await box.fill("crunch_wo");
  await expect(page.getByRole("option", { name: "function crunch_words" })).toBeVisible();
  await box.press("Enter");
  await expect(page.getByRole("option", { name: "function crunch_words" })).toBeVisible();
  await page.getByRole("option", { name: "function crunch_words" }).click();
  await expect.poll(() => parameter(page, "match")).toContain("crunch_words");
  await expect(box).toHaveValue(query.query ?? "");
  await box.fill("zzzz-nothing");
  await box.press("Enter");
  await expect(page.getByTestId("selector-fault")).toContainText("Nothing in this time is called “zzzz-nothing”");
  await expect(page.getByTestId("flamegraph")).toBeVisible();
  expect(parameter(page, "query")).toBe(query.query ?? "");
});

test("a pointer opens it, beside the selector, and in the bar where there is none", async ({ page, windows }) => {
  for (const address of [at(windows.after), comparison(windows), "/?view=nodes"]) {
    await page.goto(address);
    const button = page.getByRole("button", { name: /: go to …$/ });
    await expect(button).toHaveCount(1);
    await button.click();
    await expect(page.getByTestId("palette")).toBeFocused();
    await page.keyboard.press("Escape");
    await expect(page.getByTestId("palette")).toHaveCount(0);
  }
});

test.describe("by touch", () => {
  test.use({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } });

  test("a finger opens it from the menu of the bar, and takes a choice", async ({ page, windows }) => {
    await page.goto(at(windows.after));
    await page.getByRole("button", { name: "More", exact: true }).tap();
    await page.getByRole("button", { name: "Go to … (" }).tap();
    await page.getByTestId("palette").fill("heat");
    await page.getByRole("dialog", { name: "Go to" }).getByRole("option", { name: "Heatmap" }).first().tap();
    await expect.poll(() => parameter(page, "view")).toBe("heatmap");
  });
});
