/** Which time is looked at, which is compared with it, and of which agents. */
import { drawn, stored, WINDOW } from "./known.ts";
import { at, colours, comparison, expect, parameter, pointAt, test } from "./stack.ts";

test("quick ranges, two moments, earlier and later, live: each a step for Back", async ({ page, windows }) => {
  await page.goto(at(windows.after));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  const range = page.getByRole("group", { name: "Time range" });
  await range.getByRole("button", { name: "1h", exact: true }).click();
  await expect.poll(() => [parameter(page, "from"), parameter(page, "until")]).toEqual(["now-1h", null]);
  await expect(range.getByRole("button", { name: "1h", exact: true })).toHaveAttribute("aria-pressed", "true");

  await range.getByRole("button", { name: /live/i }).click();
  await expect.poll(() => parameter(page, "live")).toBe("1");
  await page.goBack();
  await expect.poll(() => parameter(page, "live")).toBeNull();

  await page.getByTestId("range-text").click();
  const local = (moment: number) =>
    page.evaluate((at) => {
      const text = (value: number) => String(value).padStart(2, "0");
      const date = new Date(at);
      const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(text).join("-");
      return `${day}T${[date.getHours(), date.getMinutes(), date.getSeconds()].map(text).join(":")}`;
    }, moment);
  const { from, until } = windows.after;
  await range.getByLabel("From").fill(await local(until));
  await range.getByLabel("Until").fill(await local(from));
  await expect(range).toContainText("The start must be before the end.");
  await expect(range.getByRole("button", { name: "Apply" })).toBeDisabled();
  await range.getByLabel("From").fill(await local(from));
  await range.getByLabel("Until").fill(await local(until));
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

test("window A is placed just before B, an hour, a day or a week earlier", async ({ page, windows }) => {
  await page.goto(comparison(windows));
  await expect(page.getByTestId("verdict")).toBeVisible();
  const { from, until } = windows.after;
  const placed = page.getByRole("combobox", { name: "Place window A" });
  await expect(placed.locator("option:checked")).toHaveText("where you put it");
  for (const [place, earlier] of [
    ["just before B", until - from],
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
  const rows = page.locator("table.grid tbody tr");
  await expect(rows.first()).toContainText("zz-silent");
  await expect(rows.first()).toContainText("silent");
  await expect(rows.first()).toHaveClass("silent");
  await expect(rows.first()).toContainText(/10\smin.* ago/);
  const replaced = page.locator("table.grid tbody tr.replaced");
  await expect(replaced).toHaveCount(0);
  await page.getByTestId("ended").check();
  await expect(replaced.last()).toContainText("replaced");
  // Other tests' senders, which are no agents, stand behind all of them.
  await expect(page.locator("table.grid tbody tr:not(.sender)").last()).toHaveClass("replaced");
  const heads = page.locator("table.grid thead th");
  for (const head of ["Node", "Last seen", "Rate", "Lost", "Agent CPU", "RSS", "BPF maps", "Version"])
    await expect(heads.filter({ hasText: head }).first()).toBeVisible();
  // Other views say it, too.
  await page.goto(at(windows.after));
  await expect(page.locator(".quality .figure").filter({ hasText: "silent agents" })).toContainText(/1 of \d/);
});
