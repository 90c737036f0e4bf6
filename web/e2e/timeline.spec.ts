import type { APIRequestContext } from "@playwright/test";
import { networkStalls } from "./incidents.ts";
import { at, busyOnly, colours, expect, parameter, rested, test, type Windows } from "./stack.ts";
import { warn } from "./warned.ts";

interface Samples {
  samples: { offset_ns: number[]; cpu: number[]; tid: number[] };
  complete: boolean;
}

const inOrder = (query: string, range: { from: number; until: number }, more: Record<string, string> = {}) =>
  at(range, { view: "timeline", query, ...more });

/** A CPU on which the busy process was. */
async function busyCpu(request: APIRequestContext, windows: Windows): Promise<number> {
  const { from, until } = windows.after;
  const parameters = { query: busyOnly(windows), from: String(from), until: String(until) };
  const answer = await request.get(`/api/v1/timeline?${new URLSearchParams(parameters)}`);
  const { samples } = (await answer.json()) as Samples;
  expect(samples.cpu.length).toBeGreaterThan(1);
  return samples.cpu[0] as number;
}

interface Listed {
  strings: string[];
  nodes: { parent: number[]; name: number[] };
  samples: { offset_ns: number[]; tid: number[]; stack: number[] };
}

/** Threads that ran up to `beforeNs` before another thread was in a function, and were not in it themselves. */
function othersBefore({ strings, nodes, samples }: Listed, name: string, beforeNs: number): Set<string> {
  const { offset_ns: times, tid } = samples;
  const isIn = samples.stack.map((leaf) => {
    for (let node = leaf; node > 0; node = nodes.parent[node] as number)
      if (strings[nodes.name[node] as number] === name) return true;
    return false;
  });
  const others = new Set<string>();
  times.forEach((time, i) => {
    const leads = (later: number, j: number) => j > i && isIn[j] && tid[j] !== tid[i] && later - time <= beforeNs;
    if (!isIn[i] && times.some(leads)) others.add(String(tid[i]));
  });
  return others;
}

test.describe("timeline", () => {
  test("a CPU is chosen by completion, and its samples are the server's", async ({ page, windows, request }) => {
    await page.goto(at(windows.after, { view: "timeline" }));
    // Nobody chose one: the busiest CPU is opened, as a choice of the view that filters nothing and is nowhere else.
    const times = { from: String(windows.after.from), until: String(windows.after.until) };
    const ranked = await request.get(`/api/v1/top?${new URLSearchParams({ by: "cpu", ...times })}`);
    // Samples of senders that know no CPU are in a row without a name, which has no timeline.
    const busiest = ((await ranked.json()) as { rows: { name: string }[] }).rows.find((row) => row.name !== "")?.name;
    const box = page.getByTestId("lane-cpu");
    await expect(box).toHaveValue(busiest ?? "");
    await expect(page.getByTestId("lane-opened")).toContainText("busiest CPU");
    await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(3);
    expect(parameter(page, "query")).toBeNull();
    await expect(page.getByTestId("query")).toHaveValue("");
    await page.getByRole("link", { name: "Explore" }).click();
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    expect(parameter(page, "query")).toBeNull();
    await page.goBack();
    await expect(box.locator("xpath=../datalist/option").first()).toBeAttached();
    const other = busiest === "0" ? "1" : "0";
    await box.fill(other);
    await box.press("Enter");
    await expect.poll(() => parameter(page, "query")).toBe(`{cpu="${other}"}`);
    await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(3);
    await expect(page.getByTestId("lane-opened")).toHaveCount(0);
    const { from, until } = windows.after;
    // Where agents tell waits, they stand among the samples.
    const asked = {
      query: `{cpu="${other}"}`,
      from: String(from),
      until: String(until),
      waits: "true",
      limit: "20000",
    };
    const answer = await request.get(`/api/v1/timeline?${new URLSearchParams(asked)}`);
    const { samples } = (await answer.json()) as Samples;
    expect(samples.offset_ns.length).toBeGreaterThan(20);
    const rows = page.getByRole("grid", { name: /^Samples (and waits )?in the order of time$/ });
    await expect(rows).toHaveAttribute("aria-rowcount", String(samples.offset_ns.length + 1));
    // Who leaves a lane that they chose is offered all.
    await page.getByTestId("query").fill("");
    await page.getByTestId("query").press("Enter");
    await expect(page.getByText("Choose a CPU or a thread.")).toBeVisible();
    await page.goBack();
    await expect.poll(() => parameter(page, "query")).toBe(`{cpu="${other}"}`);
  });

  test("zooms to a millisecond by wheel and keys, kept by a reload, undone by Back", async ({ page, windows }) => {
    await page.goto(inOrder('{cpu="0"}', windows.after));
    await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(3);
    const canvas = page.getByTestId("timeline");
    await canvas.hover({ position: { x: 300, y: 60 } });
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -400);
    await page.keyboard.up("Control");
    await expect.poll(() => parameter(page, "zoom")).toMatch(/^[\d.]+-[\d.]+$/);
    await canvas.focus();
    for (let i = 0; i < 16; i++) await page.keyboard.press("+");
    await expect(page.getByTestId("timeline-range")).toContainText("(1.00\u202fms)");
    const zoom = await rested(page, "zoom");
    await page.reload();
    await expect(page.getByTestId("timeline-range")).toContainText("(1.00\u202fms)");
    await expect.poll(() => parameter(page, "zoom")).toBe(zoom);
    await page.goBack();
    await expect.poll(() => parameter(page, "zoom")).not.toBe(zoom);
  });

  test("the keyboard alone goes through frames and says what they are", async ({ page, windows, request }) => {
    const cpu = await busyCpu(request, windows);
    await page.goto(inOrder(busyOnly(windows).replace("}", `,cpu="${cpu}"}`), windows.after));
    await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(2);
    await page.getByTestId("timeline").focus();
    const said = page.getByTestId("selected-sample");
    await page.keyboard.press("ArrowDown");
    await expect(said).toContainText(windows.busy);
    await expect(said).toContainText("sample");
    const text = await said.textContent();
    await expect.poll(() => parameter(page, "box")).toMatch(/^\d+(\.\d+)?-\d+$/);
    await page.reload();
    await expect(said).toHaveText(text ?? "");
    await page.getByTestId("timeline").focus();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await expect.poll(() => parameter(page, "zoom")).not.toBeNull();
  });

  test("a thread leads to all of its CPU, and a frame there to its thread", async ({ page, windows, request }) => {
    const cpu = await busyCpu(request, windows);
    await page.goto(inOrder(busyOnly(windows).replace("}", `,cpu="${cpu}"}`), windows.after));
    await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(2);
    const said = page.getByTestId("selected-sample");
    await page.getByTestId("timeline").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await expect(said).toContainText(`on CPU ${cpu}`);
    await page.getByTestId("follow").click();
    await expect.poll(() => parameter(page, "query")).toMatch(/^\{node="[^"]+",tid="\d+"\}$/);
    await expect(page.getByTestId("timeline-range")).toContainText("in sight");
    await page.getByTestId("timeline").focus();
    await page.keyboard.press("ArrowDown");
    await expect(said).toContainText(windows.busy);
    await page.getByTestId("follow").click();
    await expect.poll(() => parameter(page, "query")).toMatch(/^\{node="[^"]+",cpu="\d+"\}$/);
    // What was in sight around the frame still is.
    const [from, until] = (parameter(page, "zoom") ?? "").split("-").map(Number) as [number, number];
    expect(until - from).toBeGreaterThan(190);
    expect(until - from).toBeLessThan(windows.after.until - windows.after.from);
    await page.goBack();
    await expect(said).toContainText(windows.busy);
  });

  test("by clicks alone from a function to who ran just before it", async ({ page, windows, request }) => {
    await page.goto(at(windows.after, { query: busyOnly(windows) }));
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    await page.getByTestId("flamegraph").click({ position: { x: 200, y: 70 } });
    const panel = page.getByTestId("frame-panel");
    const name = (await panel.locator(".frame-name").textContent()) ?? "";
    await panel.getByRole("button", { name: "Preceding samples" }).click();
    await expect(page.getByTestId("before-title")).toContainText(`100 ms before`);
    await expect.poll(() => parameter(page, "hit")).toContain(name);
    // A process is no lane: the CPUs on which it was are offered, the one with most first.
    await page.getByTestId("query").fill("");
    await page.getByTestId("query").press("Enter");
    const offers = page.getByTestId("offers").getByRole("button");
    const window = { from: String(windows.after.from), until: String(windows.after.until) };
    const match = parameter(page, "hit")?.slice(1, -1) ?? "";
    const answer = await request.get(`/api/v1/series?${new URLSearchParams({ ...window, by: "cpu", match })}`);
    const [most] = ((await answer.json()) as { series: { value: string; samples: number }[] }).series;
    const cpu = most?.value;
    const told = String(most?.samples).replace(/\B(?=(\d{3})+$)/g, "\u202f");
    // Those of the process alone stay in sight until the answer is there.
    await expect(offers.first()).toHaveText(new RegExp(`^CPU ${cpu} ${told}\\D`));
    await offers.first().click();
    await expect.poll(() => parameter(page, "query")).toBe(`{cpu="${cpu}"}`);
    const threads = page.getByTestId("before-threads").getByRole("button");
    const asked = new URLSearchParams({ ...window, query: `{cpu="${cpu}"}`, limit: "20000" });
    const listed = await request.get(`/api/v1/timeline?${asked}`);
    const others = othersBefore(await listed.json(), name, 100e6);
    // Nobody else may have run there within 100 ms before: then there is nobody to be offered.
    if (others.size === 0) {
      await expect(page.getByTestId("before-title")).toContainText("on the same CPU");
      await expect(threads).toHaveCount(0);
      return;
    }
    await expect(threads.first()).toBeVisible();
    await threads.first().click();
    await expect.poll(() => parameter(page, "query")).toMatch(/^\{tid="\d+"\}$/);
    expect([...others]).toContain(/"(\d+)"/.exec(parameter(page, "query") ?? "")?.[1]);
  });

  test("what was lost is told, of a lane as of any window", async ({ page, request }) => {
    const { node, range } = await networkStalls(request, "timeline-lost");
    const chip = page.getByTestId("fold-data");
    const lane = `{node="${node}",cpu="11"}`;
    await page.goto(inOrder(lane, range));
    await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(3);
    await expect(chip).toHaveAccessibleName(/^Data: good/);
    await warn(page);
    await page.goto(inOrder(lane, range, { hit: "net_rx_action", before: "100" }));
    await expect(chip).toHaveAccessibleName(/^Data: check \(3\) .*2 samples lost/);
    await chip.click();
    await expect(page.locator(".quality .figure", { hasText: "lost" })).toContainText("ring_full 2");
    await expect(page.getByTestId("before-title")).toContainText("before net_rx_action");
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("says what is missing, and shows the rest", async ({ page, windows }) => {
    await page.goto(inOrder('{cpu="0"}', windows.after, { limit: "50" }));
    const notice = page.getByTestId("incomplete");
    await expect(notice).toContainText(/first \d+ samples?/);
    const told = (await notice.textContent()) ?? "";
    const [, samples, waits] = /first (\d+) samples?(?: and (\d+) waits?)?, up to/.exec(told) ?? [];
    expect(Number(samples) + Number(waits ?? 0), "as many as were asked for").toBe(50);
    const begin = Number(parameter(page, "from"));
    await notice.getByRole("button", { name: "Go on from there" }).click();
    await expect.poll(() => Number(parameter(page, "from"))).toBeGreaterThan(begin);
    await page.goBack();
    await expect.poll(() => Number(parameter(page, "from"))).toBe(begin);
  });

  test("what ran before a hit is the server's flamegraph", async ({ page, windows, request }) => {
    const range = windows.after;
    const lane = `{cpu="${await busyCpu(request, windows)}"}`;
    await page.goto(inOrder(lane, range));
    await page.getByTestId("hit").fill("read");
    await page.getByTestId("before").selectOption("100");
    // No sample is nearer to another one than a period: what can show nothing is grey, and says why.
    const inOrderOf = new URLSearchParams({ query: lane, from: String(range.from), until: String(range.until) });
    const listed = await request.get(`/api/v1/timeline?${inOrderOf}`);
    const values = ((await listed.json()) as { samples: { value_ns: number[] } }).samples.value_ns
      .slice(0, 1_000)
      .sort((a, b) => a - b);
    const apart = Math.round((values[Math.floor(values.length / 2)] as number) / 1e6);
    expect(apart).toBeGreaterThanOrEqual(10);
    const isNear = (ms: number) => ms < apart * 0.7;
    const why = (ms: number) => (isNear(ms) ? ` (samples are ${apart}.ms apart)` : "");
    const lengths = ["…", ...[1, 5, 10, 50, 100, 500].map((ms) => `${ms}.ms${why(ms)}`), "1.s"];
    const options = page.getByTestId("before").locator("option");
    await expect(options).toHaveText(
      lengths.map((text) => new RegExp(`^${text.replace("(", "\\(").replace(")", "\\)")}$`)),
    );
    for (const [i, ms] of [1, 5, 10, 50, 100].entries())
      await expect(options.nth(i + 1)).toBeEnabled({ enabled: !isNear(ms) });
    const parameters = new URLSearchParams({
      query: lane,
      from: String(range.from),
      until: String(range.until),
      before: "100ms",
      match: "(?i)read",
    });
    const answer = await request.get(`/api/v1/timeline?${parameters}`);
    const { samples } = (await answer.json()) as { samples: number };
    expect(samples).toBeGreaterThan(10);
    await expect(page.getByTestId("before-title")).toContainText("before read");
    await expect
      .poll(async () => (await page.getByTestId("before-title").locator("b").textContent())?.replace(/\D/g, ""))
      .toBe(String(samples));
    await expect.poll(() => colours(page)).toBeGreaterThan(3);
    // No rows are offered, as there are none.
    await expect(page.getByTestId("search")).toBeVisible();
    await expect(page.getByTestId("rows")).toHaveCount(0);
    await page.reload();
    await expect(page.getByTestId("before-title")).toContainText("before read");
  });
});
