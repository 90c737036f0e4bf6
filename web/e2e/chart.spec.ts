import { at, busyOnly, colours, expect, parameter, placeOf, READERS, test } from "./stack.ts";

test.describe("the chart and its lists", () => {
  test("lists the largest of each label, with their course; a click narrows, Back undoes", async ({
    page,
    windows,
  }) => {
    await page.goto(at(windows.after, { query: READERS }));
    await page.getByRole("tab", { name: "Top lists" }).click();
    const list = page.getByRole("region", { name: "Largest by process" });
    const row = list.getByRole("button", { name: new RegExp(`^process ${windows.busy}`) });
    await expect(row).toBeVisible();
    await expect(row.locator("path")).toHaveAttribute("d", /^M.*L/);
    await expect(page.getByRole("region", { name: "Largest by thread" })).toContainText(windows.busy.slice(0, 15));
    await row.click();
    await expect(page.getByTestId("query")).toHaveValue(busyOnly(windows));
    await page.goBack();
    await expect(page.getByTestId("query")).toHaveValue(READERS);
    await list.getByRole("button", { name: "by process, in the table" }).click();
    await expect(page.getByRole("grid", { name: "Ranked by process" })).toContainText(windows.busy);
    await expect(page.getByTestId("toplists")).toHaveCount(0);
    // An old address without the lists has no tab of them.
    await page.goto(at(windows.after, { query: READERS, lists: "0" }));
    await expect(page.getByRole("tab", { name: "Functions" })).toBeVisible();
    await expect(page.getByRole("tab", { name: "Top lists" })).toHaveCount(0);
  });

  test("with Shift a value is compared with the rest of the same window", async ({ page, windows }) => {
    await page.goto(at(windows.after, { by: "process", more: "sides" }));
    const layer = page.getByTestId("layers").getByRole("button", { name: `Only process ${windows.busy}` });
    await layer.click({ modifiers: ["Shift"] });
    await expect.poll(() => parameter(page, "view")).toBe("compare");
    await expect.poll(() => parameter(page, "query")).toBe(busyOnly(windows));
    await expect.poll(() => parameter(page, "baseQuery")).toBe(`{process!="${windows.busy}"}`);
    await expect
      .poll(() => [parameter(page, "baseFrom"), parameter(page, "baseUntil")])
      .toEqual([String(windows.after.from), String(windows.after.until)]);
    await expect(page.getByTestId("verdict")).toContainText(/A [\d.]+, B [\d.]+ cores/);
    await expect(page.getByTestId("normalize").locator("option").first()).toContainText("share");
    await page.goBack();
    await expect.poll(() => parameter(page, "view")).toBeNull();
  });

  test("a key with Shift and with Alt does what a click with them does", async ({ page, windows }) => {
    for (const [keys, query, baseQuery] of [
      ["Shift+Enter", busyOnly(windows), `{process!="${windows.busy}"}`],
      ["Alt+Enter", null, busyOnly(windows)],
    ] as const) {
      await page.goto(at(windows.after, { by: "process" }));
      await page
        .getByTestId("layers")
        .getByRole("button", { name: `Only process ${windows.busy}` })
        .press(keys);
      await expect.poll(() => parameter(page, "view"), keys).toBe("compare");
      await expect.poll(() => [parameter(page, "query"), parameter(page, "baseQuery")]).toEqual([query, baseQuery]);
    }
  });

  test("with Alt a value becomes side A, and a click then chooses B", async ({ page, windows }) => {
    await page.goto(at(windows.after, { by: "process" }));
    const layers = page.getByTestId("layers");
    await layers.getByRole("button", { name: `Only process ${windows.busy}` }).click({ modifiers: ["Alt"] });
    await expect.poll(() => parameter(page, "view")).toBe("compare");
    await expect.poll(() => parameter(page, "baseQuery")).toBe(busyOnly(windows));
    await expect.poll(() => parameter(page, "query")).toBeNull();
    await expect.poll(() => parameter(page, "baseFrom")).toBe(String(windows.after.from));
    const other = layers.getByRole("button", { name: /^Only process / }).first();
    await other.click();
    await expect.poll(() => parameter(page, "query")).toMatch(/^\{process="/);
    await expect.poll(() => parameter(page, "baseQuery")).toBe(busyOnly(windows));
    await other.click({ modifiers: ["Alt"] });
    await expect.poll(() => parameter(page, "baseQuery")).toBe(parameter(page, "query"));
    await page.goBack();
    await expect.poll(() => parameter(page, "baseQuery")).toBe(busyOnly(windows));
  });

  test("user and system time apart, as layers or lines", async ({ page, windows, request }) => {
    await page.goto(at(windows.after, { by: "process" }));
    await page.getByTestId("apart").check();
    const layers = page.getByTestId("layers").getByRole("listitem");
    const system = layers.filter({ hasText: `${windows.busy}, system` });
    await expect(system).toBeVisible();
    const parameters = new URLSearchParams({
      query: `{process="${windows.busy}",mode="kernel"}`,
      from: String(windows.after.from),
      until: String(windows.after.until),
    });
    const answer = await request.get(`/api/v1/flamegraph?${parameters}`);
    const { samples } = (await answer.json()) as { samples: number };
    expect(samples).toBeGreaterThan(5);
    const said = (await system.getAttribute("title"))?.replace(/[\u202f]/g, "");
    expect(said).toContain(`${samples} samples`);
    await system.getByRole("button", { name: `Only process ${windows.busy}` }).click();
    await expect(page.getByTestId("query")).toHaveValue(`{process="${windows.busy}",mode="kernel"}`);
    await page.goBack();
    await page.getByRole("button", { name: "Lines" }).click();
    await page.reload();
    await expect(system).toBeVisible();
    await expect(page.getByRole("button", { name: "Lines" })).toHaveAttribute("aria-pressed", "true");
    await expect.poll(() => [parameter(page, "apart"), parameter(page, "draw")]).toEqual(["1", "lines"]);
    // By mode they are apart already: what was the kernel's of each process must not divide them again.
    await page.getByTestId("by").selectOption("mode");
    await expect(layers.filter({ hasText: "kernel" })).toHaveCount(1);
    await expect(layers.filter({ hasText: ", system" })).toHaveCount(0);
  });

  test("a layer has the menu of its value, below the right button", async ({ page, windows }) => {
    await page.goto(at(windows.after, { by: "process", query: READERS }));
    await expect.poll(() => colours(page, "timechart")).toBeGreaterThan(2);
    const box = await placeOf(page.getByTestId("brush"));
    const place = [box.x + box.width / 2, box.y + box.height * 0.9] as const;
    await page.mouse.move(...place);
    await expect(page.locator(".hover-line .caption")).toContainText(windows.busy);
    await page.mouse.click(...place, { button: "right" });
    const menu = page.getByRole("menu", { name: `of process ${windows.busy}` });
    await menu.getByRole("menuitem", { name: "Exclude" }).click();
    await expect.poll(() => parameter(page, "query")).toContain(`process!="${windows.busy}"`);
  });

  test("with Ctrl the wheel zooms around the pointer, one step for Back", async ({ page, windows }) => {
    const range = { from: windows.before.from, until: windows.after.until };
    const length = range.until - range.from;
    await page.goto(at(range));
    const box = await placeOf(page.getByTestId("brush"));
    await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    await expect
      .poll(() => Number(parameter(page, "until")) - Number(parameter(page, "from")))
      .toBeLessThan(length * 0.6);
    const under = Number(parameter(page, "from")) * 0.75 + Number(parameter(page, "until")) * 0.25;
    expect(Math.abs(under - (range.from + length / 4))).toBeLessThan(length / 100);
    await expect.poll(() => colours(page)).toBeGreaterThan(2);
    await page.goBack();
    await expect.poll(() => parameter(page, "from")).toBe(String(range.from));
  });
});
