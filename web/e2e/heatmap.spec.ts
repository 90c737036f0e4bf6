import type { Page } from "@playwright/test";
import { at, busyOnly, colours, expect, parameter, placeOf, test } from "./stack.ts";

/** How many different colours the heatmap shows. */
function heatColours(page: Page): Promise<number> {
  return colours(page, "heatmap");
}

/** Drags over parts of the plot, 0 to 1 from its left and from its bottom, once there is something to see. */
async function drag(page: Page, [x1, y1]: [number, number], [x2, y2]: [number, number]): Promise<void> {
  await expect.poll(() => heatColours(page)).toBeGreaterThan(3);
  const box = await placeOf(page.getByTestId("heatmap"));
  const place = (x: number, y: number) =>
    [box.x + 46 + (box.width - 56) * x, box.y + 8 + (box.height - 28) * (1 - y)] as const;
  await page.mouse.move(...place(x1, y1));
  await page.mouse.down();
  await page.mouse.move(...place((x1 + x2) / 2, (y1 + y2) / 2), { steps: 3 });
  await page.mouse.move(...place(x2, y2), { steps: 3 });
  await page.mouse.up();
}

function span(page: Page, name: string): [number, number] {
  const [from, until] = (parameter(page, name) ?? "").split("-").map(Number);
  return [from as number, until as number];
}

test.describe("heatmap", () => {
  test("a dragged time is what the flamegraph below shows; Back and reload keep it", async ({
    page,
    windows,
    request,
  }) => {
    await page.goto(at(windows.after, { view: "heatmap", more: "data" }));
    await drag(page, [0.22, 0.5], [0.52, 0.5]);
    await expect.poll(() => parameter(page, "markA")).toMatch(/^\d+-\d+$/);
    const [from, until] = span(page, "markA");
    const columns = (windows.after.until - windows.after.from) / 1000;
    expect(Math.abs(from - (windows.after.from + Math.floor(0.22 * columns) * 1000 + 500))).toBeLessThanOrEqual(110);
    expect(Math.abs(until - (windows.after.from + Math.floor(0.52 * columns) * 1000 + 500))).toBeLessThanOrEqual(110);
    const answer = await request.get(`/api/v1/flamegraph?from=${from}&until=${until}`);
    const { samples } = (await answer.json()) as { samples: number };
    expect(samples).toBeGreaterThan(5);
    const shown = async () =>
      Number((await page.locator(".quality .figure").first().getAttribute("title"))?.replace(/\D/g, ""));
    await expect.poll(shown).toBe(samples);
    await expect(page.getByTestId("mark-A")).toContainText(/\(3\.[01]/);
    await page.reload();
    await expect.poll(shown).toBe(samples);
    await page.goBack();
    await expect.poll(() => parameter(page, "markA")).toBeNull();
  });

  test("which mark a drag makes stands in the address", async ({ page, windows }) => {
    await page.goto(at(windows.after, { view: "heatmap" }));
    await page.getByRole("button", { name: "mark B" }).click();
    await page.reload();
    await expect(page.getByRole("button", { name: "mark B" })).toHaveAttribute("aria-pressed", "true");
    await drag(page, [0.22, 0.5], [0.52, 0.5]);
    await expect(page.getByTestId("mark-B")).toBeVisible();
    await expect.poll(() => parameter(page, "markA")).toBeNull();
    await page.goBack();
    await page.goBack();
    await expect(page.getByRole("button", { name: "mark A" })).toHaveAttribute("aria-pressed", "true");
  });

  test("with Alt a second time is compared with it, and the rest with one", async ({ page, windows, request }) => {
    const range = { from: windows.before.from, until: windows.after.until };
    await page.goto(at(range, { view: "heatmap", more: "data" }));
    await drag(page, [0.05, 0.3], [0.2, 0.3]);
    await expect(page.getByTestId("mark-A")).toBeVisible();
    await page.keyboard.down("Alt");
    await drag(page, [0.8, 0.3], [0.95, 0.3]);
    await page.keyboard.up("Alt");
    await expect(page.getByTestId("mark-B")).toBeVisible();
    await expect(page.getByTestId("verdict")).toContainText("cores");
    await expect.poll(() => colours(page)).toBeGreaterThan(1);

    await page.getByRole("button", { name: "Clear B" }).click();
    await page.getByTestId("rest").click();
    await expect.poll(() => parameter(page, "markB")).toBe("rest");
    const [from, until] = span(page, "markA");
    const parameters = new URLSearchParams({
      from: String(range.from),
      until: String(range.until),
      except_from: String(from),
      except_until: String(until),
      base_from: String(from),
      base_until: String(until),
    });
    const answer = await request.get(`/api/v1/diff?${parameters}`);
    const diff = (await answer.json()) as { base: { samples: number }; comparison: { samples: number } };
    const sides = page.locator(".data .quality");
    for (const [i, side] of [diff.base, diff.comparison].entries()) {
      expect(side.samples).toBeGreaterThan(0);
      await expect
        .poll(async () => (await sides.nth(i).locator(".figure").first().getAttribute("title"))?.replace(/\D/g, ""))
        .toBe(String(side.samples));
    }
    // The rest of the range does not hold what it is the rest of, also where it is halved for the control.
    const caveats = page.getByTestId("caveats");
    const control = page.getByTestId("control");
    await expect(control).toContainText(/A\/A check(: | passed \(| found )/);
    await expect(caveats.filter({ hasText: "A and B share" })).toHaveCount(0);
    const asked = page.waitForRequest((one) => one.url().includes("/diff?") && one.url().includes("min_share=0.9999"));
    await page.getByRole("button", { name: "Swap" }).click();
    const halves = new URL((await asked).url()).searchParams;
    expect([halves.get("base_except_from"), halves.get("except_from")]).toContain(String(from));
    await expect(control).toContainText(/A\/A check(: | passed \(| found )/);
    await expect(control).not.toContainText("not made");
    await expect(caveats.filter({ hasText: "A and B share" })).toHaveCount(0);
    await expect.poll(() => parameter(page, "markA")).toBe("rest");
    await page.goBack();
    await expect.poll(() => parameter(page, "markB")).toBe("rest");
  });

  test("the keyboard alone marks and says what", async ({ page, windows }) => {
    await page.goto(at(windows.after, { view: "heatmap", query: busyOnly(windows) }));
    await expect.poll(() => heatColours(page)).toBeGreaterThan(2);
    await page.getByRole("combobox", { name: "Selector", exact: true }).focus();
    const isThere = () => page.getByTestId("heatmap").evaluate((element) => element === document.activeElement);
    for (let i = 0; i < 60 && !(await isThere()); i++) await page.keyboard.press("Tab");
    await expect(page.getByTestId("heatmap")).toBeFocused();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowUp");
    await expect(page.getByTestId("heat-cell")).toContainText("sample");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Enter");
    await expect.poll(() => parameter(page, "markA")).not.toBeNull();
    const [from, until] = span(page, "markA");
    // A cell is as long as the sampler's rate allows.
    const cell = until - from - 2_000;
    expect([20, 40, 50, 100]).toContain(cell);
    expect([from - windows.after.from, until - windows.after.from]).toEqual([1_000 + cell, 3_000 + 2 * cell]);
    await page.keyboard.press("PageDown");
    await page.keyboard.press("Alt+Enter");
    await expect.poll(() => parameter(page, "markB")).not.toBeNull();
    await page.keyboard.press("Escape");
    await expect.poll(() => parameter(page, "markA")).toBeNull();
  });
});
