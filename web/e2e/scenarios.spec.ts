/**
 * The scenarios that the page exists for, played on samples whose truth is known: the answer is in sight within so many
 * clicks, from the page of a node on.
 */
import type { Page } from "@playwright/test";
import { type Hand, keysOf, pointerOf } from "./hand.ts";
import {
  CONTAINERS,
  halfTheJobs,
  type Incident,
  JOBS,
  KUBELET,
  kubeletJump,
  networkStalls,
  SAMPLES_A_SECOND,
  STALLS,
  unusedZfs,
  zombieCgroups,
} from "./incidents.ts";
import { at, colours, expect, parameter, test } from "./stack.ts";

const MINUTE_S = 60;

/** Explore, of one node or of several. */
async function open(page: Page, { range }: Incident, ...nodes: string[]): Promise<void> {
  const query = nodes.length === 1 ? `{node="${nodes[0]}"}` : `{node=~"${nodes.join("|")}"}`;
  await page.goto(at(range, { query }));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await expect(page.getByTestId("layers").getByRole("listitem").first()).toBeVisible();
}

const figures = (text: string) => [...text.matchAll(/\d+(?:\.\d+)?/g)].map(([number]) => Number(number));

/** From the node to what grew in its kubelet. */
async function playJump(page: Page, hand: Hand): Promise<void> {
  await hand.click(page.getByRole("button", { name: "Only service kubelet" }));
  await expect.poll(() => parameter(page, "query")).toContain('service="kubelet"');
  await hand.click(page.getByTestId("largest-change"));
  const verdict = page.getByTestId("verdict");
  await expect(verdict).toContainText(
    /2 causes \(\d+ of \d+ frames\): tree::walk and 1 more; threads housekeeping, gc/,
  );
  await expect(verdict).toBeInViewport({ ratio: 1 });
  const [before = 0, after = 0] = figures((await verdict.locator("b").textContent()) ?? "");
  const sum = (side: 0 | 1) => Object.values(KUBELET).reduce((all, counts) => all + counts[side], 0);
  // The step in which it jumps is in neither window.
  expect(before).toBeCloseTo(sum(0) / SAMPLES_A_SECOND / MINUTE_S, 2);
  expect(after).toBeCloseTo(sum(1) / SAMPLES_A_SECOND / MINUTE_S, 2);
  const causes = page.getByTestId("changes").locator(".cause-name");
  // The walk first, and what clears away what it found; all else is grey.
  await expect(causes).toHaveCount(2);
  await expect(causes.nth(0)).toContainText("grew: tree::walk");
  await expect(causes.nth(1)).toContainText("grew: gc::free_entries");
  await expect(causes.nth(0)).toBeInViewport();
}

/** Who of the threads it was: both that grew, and none that did not. */
async function threadsOf(page: Page): Promise<void> {
  const rows = page.getByRole("grid", { name: "Both windows by thread" }).locator(".vtable-row");
  await expect(rows).toHaveCount(Object.keys(KUBELET).length);
  for (const [thread, [before, after]] of Object.entries(KUBELET)) {
    const row = rows.filter({ hasText: thread });
    await expect(row).toBeInViewport();
    await expect(row).toHaveClass(after > before ? /grew/ : /same/);
  }
}

test("S1, the kubelet jump: from the node to the walk and its thread in 3 clicks", async ({ page, request }) => {
  const jump = await kubeletJump(request, "s1");
  await open(page, jump, jump.node);
  const hand = pointerOf(page);
  await playJump(page, hand);
  await hand.click(page.getByRole("tab", { name: "Thread" }));
  await threadsOf(page);
  await expect(page.getByTestId("verdict")).toContainText("tree::walk");
  await expect(page.getByTestId("verdict")).toBeInViewport({ ratio: 1 });
  expect(hand.acts).toBeLessThanOrEqual(3);
});

test("S1 by keyboard alone, and on to the walk in the graph", async ({ page, request }) => {
  const jump = await kubeletJump(request, "s1-keys");
  await open(page, jump, jump.node);
  const hand = keysOf(page);
  await playJump(page, hand);
  await hand.click(page.getByTestId("changes").locator(".cause-name").first());
  await expect(page.getByTestId("reset-zoom")).toBeVisible();
  await expect.poll(() => parameter(page, "focus")).toMatch(/tree::walk$/);
  expect(hand.acts).toBeLessThanOrEqual(3);
  // Tabs are one stop: arrows go through them.
  await page.getByRole("tab", { name: "Causes" }).focus();
  const thread = page.getByRole("tab", { name: "Thread" });
  while (!(await thread.evaluate((tab) => tab === document.activeElement))) await page.keyboard.press("ArrowRight");
  await threadsOf(page);
});

test("S2, zombie cgroups: container, process, and time in the kernel apart, in 4 clicks", async ({ page, request }) => {
  const slow = await zombieCgroups(request, "s2");
  await open(page, slow, slow.node);
  const hand = pointerOf(page);
  await hand.click(page.getByTestId("apart"));
  const top = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row").first();
  await expect(top).toContainText("mem_cgroup_nr_lru_pages");
  await hand.click(top);
  await hand.click(page.getByRole("tab", { name: "Spent by" }));
  const [[, lxcfs], [, cadvisor]] = [CONTAINERS.lxcfs, CONTAINERS.cadvisor];
  const share = (samples: number) => new RegExp(`${Math.round((100 * samples) / (lxcfs + cadvisor))}(\\.0)?\\s%`);
  for (const [label, suffix] of [
    ["container", "-7f3c"],
    ["process", ""],
  ] as const) {
    const rows = page.getByRole("region", { name: `Spent by ${label}` }).locator(".spent-row");
    await expect(rows).toHaveCount(2);
    for (const [i, name, samples] of [
      [0, "lxcfs", lxcfs],
      [1, "cadvisor", cadvisor],
    ] as const) {
      await expect(rows.nth(i)).toContainText(`${name}${suffix}`);
      await expect(rows.nth(i)).toContainText(share(samples));
      await expect(rows.nth(i)).toBeInViewport();
    }
  }
  // One stack has the program's frames and the kernel's.
  await expect.poll(() => parameter(page, "frame")).toMatch(/lxcfs_loop;.*vfs_read;.*mem_cgroup_nr_lru_pages$/);
  const layers = page.getByTestId("layers").getByRole("listitem");
  for (const [i, mode] of ["user", "system"].entries()) {
    const layer = layers.filter({ has: page.getByRole("button", { name: `Only service lxcfs, ${mode}` }) });
    await expect(layer).toBeInViewport();
    const [cores = 0] = figures((await layer.locator(".layer-cores").textContent()) ?? "");
    expect(cores).toBeCloseTo((CONTAINERS.lxcfs[i] ?? 0) / SAMPLES_A_SECOND / MINUTE_S, 2);
  }
  expect(hand.acts).toBeLessThanOrEqual(4);
});

test("S3, ZFS that nobody uses: a click and the name tell the function's share", async ({ page, request }) => {
  const zfs = await unusedZfs(request, "s3");
  await open(page, zfs, zfs.node);
  const hand = pointerOf(page);
  await hand.click(page.getByTestId("search"));
  await hand.type("extract_entropy");
  const found = page.getByTestId("found");
  await expect(found.locator("b")).toHaveText(/^30(\.0)?\s%$/);
  await expect(found).toContainText(/300 samples|15(\.0)?\s*s|0\.25/);
  await expect(found).toBeInViewport({ ratio: 1 });
  expect(hand.acts).toBeLessThanOrEqual(1);
  expect(hand.letters).toBe("extract_entropy".length);
});

test("S4, half the jobs: CPU time of each process on both sides in 4 clicks", async ({ page, request }) => {
  const jobs = await halfTheJobs(request, "s4");
  await open(page, jobs, jobs.node, jobs.other);
  const hand = pointerOf(page);
  await hand.click(page.getByRole("tab", { name: "Top lists" }));
  const nodes = page.getByRole("region", { name: "Largest by node" });
  await hand.click(nodes.getByRole("button", { name: `What can be done with node ${jobs.node}` }));
  await hand.click(page.getByRole("menuitem", { name: "Compare with the rest" }));
  await expect.poll(() => parameter(page, "view")).toBe("compare");
  await hand.click(page.getByRole("tab", { name: "Process" }));
  const rows = page.getByRole("grid", { name: "Both windows by process" }).locator(".vtable-row");
  await expect(rows).toHaveCount(Object.keys(JOBS).length);
  for (const [process, seconds] of Object.entries(JOBS)) {
    const row = rows.filter({ hasText: process });
    await expect(row).toBeInViewport();
    for (const [i, time] of seconds.entries())
      await expect(row.getByRole("gridcell").nth(1 + i)).toHaveText(
        time === 0 ? /^0\s*s?$/ : new RegExp(`^${time}(\\.0+)?\\s*s$`),
      );
  }
  expect(hand.acts).toBeLessThanOrEqual(4);
});

test("S5, stalls of 100 ms: what ran before on that CPU, in 3 clicks and the name", async ({ page, request }) => {
  const stalls = await networkStalls(request, "s5");
  await open(page, stalls, stalls.node);
  const hand = pointerOf(page);
  await hand.click(page.getByTestId("search"));
  await hand.type("net_rx_action");
  await expect(page.getByTestId("found").locator("b")).toBeVisible();
  // Enter goes to the match, and selects it.
  await page.keyboard.press("Enter");
  await hand.click(page.getByTestId("frame-panel").getByRole("button", { name: "Preceding samples" }));
  await hand.click(page.getByTestId("offers").getByRole("button", { name: `CPU 11 ${STALLS.times} samples` }));
  await expect.poll(() => parameter(page, "query")).toContain('cpu="11"');
  const before = STALLS.times * STALLS.before;
  const title = page.getByTestId("before-title");
  await expect(title).toContainText(`${before} samples in the 100 ms before functions named net_rx_action`);
  const threads = page.getByTestId("before-threads").getByRole("button");
  await expect(threads).toHaveText([`cadvisor ${before}`]);
  await expect(threads).toBeInViewport({ ratio: 1 });
  // And in what: the read, in the graph's table.
  const top = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row").first();
  await expect(top).toContainText("memcg_stat_show");
  expect(hand.acts).toBeLessThanOrEqual(3);
});
