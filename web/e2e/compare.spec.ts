import { busyOnly, colours, comparison, expect, hoverRoot, parameter, test } from "./stack.ts";

test.describe("compare", () => {
  test("finds what came: what began is new, with both sides' counts", async ({ page, windows, request }) => {
    await page.goto(comparison(windows, { query: busyOnly(windows), normalize: "rate" }));
    await expect(page.getByTestId("verdict")).toContainText("→");
    await expect.poll(() => colours(page)).toBeGreaterThan(2);
    const tooltip = await hoverRoot(page);
    await expect(tooltip).toContainText("A, before");
    await expect(tooltip).toContainText("B, after");
    const parameters = new URLSearchParams({
      query: busyOnly(windows),
      from: String(windows.after.from),
      until: String(windows.after.until),
      base_from: String(windows.before.from),
      base_until: String(windows.before.until),
    });
    const answer = await request.get(`/api/v1/diff?${parameters}`);
    const diff = (await answer.json()) as { base: { samples: number }; comparison: { samples: number } };
    expect(diff.base.samples).toBe(0);
    expect(diff.comparison.samples).toBeGreaterThan(20);
    const cells = (await tooltip.locator("td").allTextContents()).map((text) => text.replace(/\D/g, ""));
    expect(cells[0]).toBe("0");
    expect(cells[4]).toBe(String(diff.comparison.samples));
    await expect(tooltip).toContainText("new");
  });

  test("of the whole machine, what began stands out and can be singled out", async ({ page, windows }) => {
    await page.goto(comparison(windows));
    const table = page.getByRole("grid", { name: "Functions of both windows" });
    await expect(table.getByRole("row").nth(1)).toBeVisible();
    await page.getByTestId("only-significant").check();
    expect(parameter(page, "only")).toBe("significant");
    await expect(table.locator(".vtable-row.same")).toHaveCount(0);
    await expect(table.locator(".vtable-row.grew, .vtable-row.new").first()).toBeVisible();
    await expect(page.getByTestId("verdict")).toContainText("differ");
  });

  test("windows are dragged as a whole, by an edge and with keys; Back undoes", async ({ page, windows }) => {
    await page.goto(comparison(windows));
    const body = page.getByTestId("window-comparison");
    await expect(body).toBeVisible();
    const length = windows.after.until - windows.after.from;
    const box = await body.boundingBox();
    if (box === null) throw new Error("window B is not there");
    const grab = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    await page.mouse.move(grab.x, grab.y);
    await page.mouse.down();
    await page.mouse.move(grab.x - 60, grab.y + 5, { steps: 6 });
    await page.mouse.up();
    await expect.poll(() => Number(parameter(page, "from"))).toBeLessThan(windows.after.from);
    expect(Number(parameter(page, "until")) - Number(parameter(page, "from"))).toBe(length);
    expect(parameter(page, "baseFrom")).toBe(String(windows.before.from));
    await page.goBack();
    expect(parameter(page, "from")).toBe(String(windows.after.from));

    const edge = await page.getByTestId("edge-base-until").boundingBox();
    if (edge === null) throw new Error("window A has no edge");
    await page.mouse.move(edge.x + edge.width / 2, edge.y + edge.height / 2);
    await page.mouse.down();
    await page.mouse.move(edge.x - 40, edge.y + 20, { steps: 6 });
    await page.mouse.up();
    await expect.poll(() => Number(parameter(page, "baseUntil"))).toBeLessThan(windows.before.until);
    expect(parameter(page, "baseFrom")).toBe(String(windows.before.from));

    const early = Number(parameter(page, "baseUntil"));
    await page.getByRole("slider", { name: "End of window A, before" }).focus();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => Number(parameter(page, "baseUntil"))).toBeGreaterThan(early);
  });

  test("shares instead of rates, widths of one side, a second selector", async ({ page, windows }) => {
    await page.goto(comparison(windows));
    await page.getByTestId("normalize").selectOption("share");
    await expect.poll(() => parameter(page, "normalize")).toBe("share");
    await expect.poll(() => colours(page)).toBeGreaterThan(2);
    await expect(await hoverRoot(page)).toContainText("share");
    await page.getByRole("combobox", { name: "Selector of A" }).fill('mode="kernel"');
    await page.getByRole("combobox", { name: "Selector of A" }).press("Enter");
    await expect.poll(() => parameter(page, "baseQuery")).toBe('{mode="kernel"}');
    await page.reload();
    await expect(page.getByRole("combobox", { name: "Selector of A" })).toHaveValue('{mode="kernel"}');
    await expect(page.getByTestId("normalize")).toHaveValue("share");
  });

  test("leads there from a window and back", async ({ page, windows }) => {
    const { from, until } = windows.after;
    await page.goto(`/?from=${from}&until=${until}`);
    await page.getByRole("button", { name: "Compare with before" }).click();
    expect(parameter(page, "view")).toBe("compare");
    expect(Number(parameter(page, "baseUntil"))).toBe(from);
    expect(Number(parameter(page, "baseFrom"))).toBe(from - (until - from));
    await page.goBack();
    expect(parameter(page, "view")).toBeNull();
    await expect.poll(() => colours(page)).toBeGreaterThan(4);
  });
});
