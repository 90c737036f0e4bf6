/** Which time is looked at, which is compared with it, and of which agents. */
import { drawn, stored, WINDOW } from "./known.ts";
import { at, colours, comparison, expect, parameter, pointAt, test } from "./stack.ts";

test("quick ranges, a range that is typed, earlier and later, live: each a step for Back", async ({
  page,
  windows,
}) => {
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  const range = page.getByRole("group", { name: "Time range" });
  await page.getByTestId("range-text").click();
  await range.getByRole("button", { name: "1h", exact: true }).click();
  await expect.poll(() => [parameter(page, "from"), parameter(page, "until")]).toEqual(["now-1h", null]);
  await page.getByTestId("range-text").click();
  await expect(range.getByRole("button", { name: "1h", exact: true })).toHaveAttribute("aria-pressed", "true");
  await page.getByTestId("range-text").click();

  await range.getByRole("button", { name: /live/i }).click();
  await expect.poll(() => parameter(page, "live")).toBe("1");
  await page.goBack();
  await expect.poll(() => parameter(page, "live")).toBeNull();

  await page.getByTestId("range-text").click();
  const { from, until } = windows.after;
  const field = page.getByTestId("range-field");
  await expect(field).toHaveValue("now-1h to now");
  await field.fill(`${until} to ${from}`);
  await expect(page.getByTestId("range-said")).toContainText("is not before the end");
  await expect(range.getByRole("button", { name: "Apply" })).toBeDisabled();
  await field.fill("soon");
  await expect(page.getByTestId("range-said")).toContainText("Unix seconds or milliseconds");
  await field.fill(`${new Date(from).toISOString()} to ${new Date(until).toISOString()}`);
  await range.getByRole("button", { name: "Apply" }).click();
  await expect.poll(() => [parameter(page, "from"), parameter(page, "until")]).toEqual([String(from), String(until)]);
  await expect.poll(() => colours(page)).toBeGreaterThan(2);

  const half = (until - from) / 2;
  await range.getByRole("button", { name: "Earlier" }).click();
  await expect.poll(() => parameter(page, "from")).toBe(String(from - half));
  await range.getByRole("button", { name: "Later" }).click();
  await expect.poll(() => parameter(page, "until")).toBe(String(until));
  await page.goBack();
  await expect.poll(() => parameter(page, "from")).toBe(String(from - half));
});

test("a range that is typed follows the present where it says so; presets reach 90 days", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await page.getByTestId("range-text").click();
  const field = page.getByTestId("range-field");
  await field.fill("now-2h to now-30m");
  await field.press("Enter");
  await expect.poll(() => [parameter(page, "from"), parameter(page, "until")]).toEqual(["now-2h", "now-30m"]);
  await page.getByTestId("range-text").click();
  await field.fill(String(Math.floor(windows.after.from / 1000)));
  await field.press("Enter");
  await expect
    .poll(() => [parameter(page, "from"), parameter(page, "until")])
    .toEqual([String(windows.after.from), null]);
  await page.getByTestId("range-text").click();
  await page.getByRole("group", { name: "Last" }).getByRole("button", { name: "90d" }).click();
  await expect.poll(() => parameter(page, "from")).toBe("now-90d");
});

test.describe("in another zone than UTC", () => {
  test.use({ timezoneId: "America/St_Johns" });

  test("the zone is a choice of the address, and all times follow it", async ({ page, windows }) => {
    await page.goto(at(windows.after));
    const clock = new Date(windows.after.from).toISOString().slice(11, 19);
    const shown = page.getByTestId("range-text");
    await expect(shown).not.toContainText(clock);
    await expect(shown).toHaveAttribute("title", "UTC-3:30");
    await shown.click();
    await page.getByRole("group", { name: "Time zone" }).getByRole("button", { name: "UTC" }).click();
    await expect.poll(() => parameter(page, "tz")).toBe("utc");
    await expect(page.getByTestId("range-field")).toHaveValue(new RegExp(`^\\d{4}-\\d\\d-\\d\\d ${clock} to `));
    await expect(shown).toContainText(`${clock} – `);
    await expect(shown).toContainText("UTC");
    await page.reload();
    await expect(shown).toContainText(`${clock} – `);
    await page.goto(comparison(windows, { tz: "utc" }));
    const body = page.getByTestId("window-comparison").getByRole("slider").first();
    await expect(body).toHaveAttribute("aria-valuetext", new RegExp(`^${clock} – `));
  });
});

test("window A is placed just before B, an hour, a day or a week earlier", async ({ page, windows }) => {
  await page.goto(comparison(windows, { more: "data" }));
  await expect(page.getByTestId("verdict")).toBeVisible();
  const { from, until } = windows.after;
  const placed = page.getByRole("combobox", { name: "Place window A" });
  await expect(placed.locator("option:checked")).toHaveText("custom");
  for (const [place, earlier] of [
    ["previous window", until - from],
    ["an hour earlier", 3_600_000],
    ["a day earlier", 86_400_000],
    ["a week earlier", 7 * 86_400_000],
  ] as const) {
    await placed.selectOption(place);
    await expect
      .poll(() => [parameter(page, "baseFrom"), parameter(page, "baseUntil")])
      .toEqual([from, until].map((moment) => String(moment - earlier)));
    await expect.poll(() => parameter(page, "from")).toBe(String(from));
    // Both windows are on the chart, and say what was found there.
    await expect(page.getByTestId("window-base")).toBeInViewport();
    await expect(page.getByTestId("window-comparison")).toBeInViewport();
    await expect(placed).toHaveValue(place);
  }
  await expect(page.getByTestId("caveats")).toContainText("No agent covered");
  await page.goBack();
  await expect(placed).toHaveValue("a day earlier");
});

test("a frame is as wide as it is in A, in B, or in both", async ({ page, request }) => {
  const main = { name: "main", module: "prog" };
  const [a, b] = await Promise.all(
    [30, 70].map((samples) =>
      stored(request, `width-${samples}`, [
        { frames: [main, { name: "first", module: "prog" }], samples },
        { frames: [main, { name: "second", module: "prog" }], samples: 100 - samples },
      ]),
    ),
  );
  const base = { baseQuery: a?.query ?? "", baseFrom: String(WINDOW.from), baseUntil: String(WINDOW.until) };
  await page.goto(at(WINDOW, { view: "compare", ...b, ...base, normalize: "share", pane: "graph" }));
  await drawn(page);
  const graph = page.getByTestId("flamegraph");
  const width = page.getByRole("combobox", { name: /^width/ });
  // At six tenths of the width. Of both together each has a half, A has three tenths of the first, B seven.
  for (const [side, name] of [
    ["both", /^(first|second)/],
    ["before", /^second/],
    ["after", /^first/],
  ] as const) {
    await width.selectOption(side);
    const box = await drawn(page);
    await pointAt(graph, { x: box.width * 0.6, y: 19 * 2 + 9 }, name);
  }
  await page.reload();
  await expect(width).toHaveValue("after");
});

test("agents of which nothing comes are marked and stand first; replaced ones are shown on request", async ({
  page,
  windows,
}) => {
  expect(windows.after.until).toBeGreaterThan(0);
  await page.route("**/api/v1/nodes", async (route) => {
    const answer = await route.fetch();
    const { nodes } = (await answer.json()) as { nodes: Record<string, unknown>[] };
    const [alive] = nodes;
    const gone = { ...alive, instance: "gone", late: true, last_seen: Number(alive?.last_seen) - 600_000 };
    await route.fulfill({ response: answer, json: { nodes: [...nodes, { ...gone, node: "zz-silent" }, gone] } });
  });
  await page.goto("/?view=nodes");
  const rows = page.locator(".nodes .vtable-row");
  await expect(rows.first()).toContainText("zz-silent");
  await expect(rows.first()).toContainText("silent");
  await expect(rows.first()).toHaveClass(/\bsilent\b/);
  await expect(rows.first()).toContainText(/10\smin.* ago/);
  const replaced = page.locator(".nodes .vtable-row.replaced");
  await expect(replaced).toHaveCount(0);
  await page.getByTestId("ended").check();
  await expect(replaced.last()).toContainText("replaced");
  // Other tests' senders, which are no agents, stand behind all of them.
  await expect(page.locator(".nodes .vtable-row:not(.sender)").last()).toHaveClass(/\breplaced\b/);
  const heads = page.locator(".nodes [role=columnheader]");
  for (const head of ["Node", "Last seen", "Rate", "Lost", "Agent CPU", "RSS", "BPF maps", "Version"])
    await expect(heads.filter({ hasText: head }).first()).toBeVisible();
  // Other views say it, too.
  await page.goto(at(windows.after, { more: "data" }));
  await expect(page.locator(".quality .figure").filter({ hasText: "agents not reporting" })).toContainText(/1 of \d/);
});
