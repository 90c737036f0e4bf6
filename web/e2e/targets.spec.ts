/**
 * What is pressed on a phone is large enough for a finger. Everywhere it is 24 pixels wide and high, or has room around
 * it, as WCAG 2.2 asks for (2.5.8); what leads through the page is 44.
 */
import type { Locator, Page } from "@playwright/test";
import { kubeletJump } from "./incidents.ts";
import { at, colours, comparison, expect, test } from "./stack.ts";

const PHONE = { width: 390, height: 844 };
const MAIN = 44;
const UNFOLDED = "chart,data,filter,graph,key,sides";

test.use({ viewport: PHONE });

/** Controls in sight that are too small, each with its size; one in a sentence may be as high as its line. */
function tooSmall(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const LEAST = 24;
    const CONTROLS =
      "a[href], button, input, select, textarea, summary, .vtable-row, " +
      "[role=slider], [role=tab], [role=option], [role=treeitem], [role=menuitem]";
    /** A box to check is pressed by its words as well. */
    const targetOf = (control: Element) =>
      control.matches("input[type=checkbox], input[type=radio]") ? (control.closest("label") ?? control) : control;
    const isInSentence = (control: Element) => {
      const around = control.parentElement?.textContent ?? "";
      return (
        getComputedStyle(control).display.startsWith("inline") &&
        control.closest("p") !== null &&
        around.trim().length > (control.textContent ?? "").trim().length
      );
    };
    const targets = [...document.querySelectorAll<HTMLElement>(CONTROLS)]
      .filter((control) => !control.matches(":disabled"))
      .filter((control) => control.checkVisibility({ visibilityProperty: true }))
      // Such as the skip link, which is there once it has the focus.
      .filter((control) => getComputedStyle(control).clipPath === "none")
      .map((control) => ({ element: targetOf(control), box: targetOf(control).getBoundingClientRect() }))
      // What is hidden but read aloud is a pixel in size.
      .filter(({ box }) => box.width > 1 && box.height > 1);
    const isSmall = ({ box: { width, height } }: (typeof targets)[number]) =>
      Math.round(width) < LEAST || Math.round(height) < LEAST;
    const middleOf = ({ x, y, width, height }: DOMRect) => ({ x: x + width / 2, y: y + height / 2 });
    /** A circle around its middle meets no other target, and no circle of another small one. */
    const hasRoom = (one: (typeof targets)[number]) => {
      const middle = middleOf(one.box);
      return targets.every((other) => {
        if (other.element.contains(one.element) || one.element.contains(other.element)) return true;
        const { left, right, top, bottom } = other.box;
        const x = Math.max(left - middle.x, 0, middle.x - right);
        const y = Math.max(top - middle.y, 0, middle.y - bottom);
        if (Math.hypot(x, y) < LEAST / 2) return false;
        const far = middleOf(other.box);
        return !isSmall(other) || Math.hypot(far.x - middle.x, far.y - middle.y) >= LEAST;
      });
    };
    return targets
      .filter((one) => isSmall(one) && !isInSentence(one.element) && !hasRoom(one))
      .map(({ element, box }) => `${box.width} x ${box.height}: ${element.outerHTML.slice(0, 120)}`);
  });
}

/** All of them are as large as a finger. */
async function expectMain(controls: Locator): Promise<void> {
  await expect(controls.first()).toBeVisible();
  const small = await controls.evaluateAll(
    (all, least) =>
      all
        .map((one) => ({ one, box: one.getBoundingClientRect() }))
        .filter(({ box }) => Math.round(box.width) < least || Math.round(box.height) < least)
        .map(({ one, box }) => `${box.width} x ${box.height}: ${one.outerHTML.slice(0, 120)}`),
    MAIN,
  );
  expect(small).toEqual([]);
}

/** The bar, and what it opens. */
async function expectBar(page: Page): Promise<void> {
  await expectMain(page.locator(".header > .brand, .header .menu > button"));
  await page.getByTitle("Views", { exact: true }).click();
  await expectMain(page.getByRole("navigation", { name: "Views" }).getByRole("link"));
  expect(await tooSmall(page), "views").toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "More", exact: true }).click();
  await expectMain(page.locator(".header .menu-list button"));
  expect(await tooSmall(page), "more").toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByTitle("Choose the time range", { exact: true }).click();
  await expect(page.getByTestId("range-field")).toBeVisible();
  expect(await tooSmall(page), "time range").toEqual([]);
  await page.keyboard.press("Escape");
}

/** What stands in each tab beside the graph. */
async function expectTabs(page: Page): Promise<void> {
  const tabs = page.getByRole("tablist", { name: "Beside the graph" }).getByRole("tab");
  for (const title of await tabs.allTextContents()) {
    await page.getByRole("tab", { name: title, exact: true }).click();
    await page.waitForLoadState("networkidle");
    expect(await tooSmall(page), title).toEqual([]);
  }
  await tabs.first().click();
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
}

for (const view of ["explore", "compare"])
  test(`${view}: 24 pixels everywhere, 44 for the main ones`, async ({ page, request }) => {
    const { node, range } = await kubeletJump(request, `targets-${view}`);
    const query = `{node="${node}",service="kubelet"}`;
    const middle = (range.from + range.until) / 2;
    const both = { busy: "", before: { ...range, until: middle }, after: { ...range, from: middle } };
    const address = (more: Record<string, string>) => {
      const chosen = { query, by: "thread", ...more };
      return view === "compare" ? comparison(both, chosen) : at(range, chosen);
    };
    await page.goto(address({}));
    await expect.poll(() => colours(page)).toBeGreaterThan(2);
    await page.waitForLoadState("networkidle");
    expect(await tooSmall(page), "as it opens").toEqual([]);
    await expectBar(page);

    await page.goto(address({ more: UNFOLDED, match: "walk" }));
    await expect.poll(() => colours(page)).toBeGreaterThan(2);
    await expect(page.getByTestId("layers").getByRole("listitem").first()).toBeVisible();
    await expect(page.getByTestId("found").getByRole("button")).toHaveCount(2);
    await page.waitForLoadState("networkidle");
    expect(await tooSmall(page), "unfolded").toEqual([]);
    // Rows of layers that overlap would be smaller than they are told to be.
    const rows = await page
      .getByTestId("layers")
      .getByRole("listitem")
      .evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().height)));
    expect(Math.min(...rows)).toBeGreaterThanOrEqual(24);

    // A frame: its menu, what is told of it, who calls it.
    await page.getByTestId("flamegraph").focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Shift+F10"]) await page.keyboard.press(key);
    await expectMain(page.getByRole("menu", { name: /^Frame / }).getByRole("menuitem"));
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: /^Download/ }).click();
    await expectMain(page.locator(".menu-list").locator("a, button"));
    await page.keyboard.press("Escape");
    await expectTabs(page);
  });

test("threads' time: 24 pixels everywhere, 44 for the main ones", async ({ page, windows }) => {
  for (const more of ["", UNFOLDED]) {
    await page.goto(at(windows.after, { view: "threads", by: "process", ...(more === "" ? {} : { more }) }));
    await expect(page.locator(".thread-bar").first()).toBeVisible();
    await expect(page.getByTestId("wait-chips")).toBeVisible();
    await page.waitForLoadState("networkidle");
    expect(await tooSmall(page), more).toEqual([]);
  }
  await expectBar(page);
});
