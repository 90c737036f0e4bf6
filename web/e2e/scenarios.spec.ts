/**
 * The scenarios that the page exists for, played on samples whose truth is known: the answer is in sight within so many
 * clicks, from the page of a node on, on a desk, on a small laptop and on a phone. Each says in a line what it took.
 */
import type { Locator, Page } from "@playwright/test";
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
import { pictured } from "./pictures.ts";
import { at, colours, expect, parameter, test } from "./stack.ts";

const MINUTE_S = 60;
const LAPTOP = { width: 1280, height: 720 };
const PHONE = { width: 390, height: 844 };

/** Explore, of one node or of several. */
async function open(page: Page, { range }: Incident, ...nodes: string[]): Promise<void> {
  const query = nodes.length === 1 ? `{node="${nodes[0]}"}` : `{node=~"${nodes.join("|")}"}`;
  await page.goto(at(range, { query }));
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  // On a phone the layers are folded: the chart itself says that it is there.
  await expect.poll(() => colours(page, "timechart")).toBeGreaterThan(2);
  if (page.viewportSize()?.width !== PHONE.width)
    await expect(page.getByTestId("layers").getByRole("listitem").first()).toBeVisible();
}

/** On a phone the tools of the chart, and of the graph, are folded. */
const unfolded = (page: Page, fold: "chart" | "graph") => page.getByTestId(`fold-${fold}`);
const tab = (page: Page, name: string) => page.getByRole("tab", { name, exact: true });

const figures = (text: string) => [...text.matchAll(/\d+(?:\.\d+)?/g)].map(([number]) => Number(number));

/** From the kubelet to what grew in it: the line that says both levels, the causes and the threads. */
async function compareAcross(page: Page, hand: Hand): Promise<void> {
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
}

/** From the node to what grew in its kubelet. `look`: once the kubelet is what is looked at. */
async function playJump(page: Page, hand: Hand, look: () => Promise<void> = async () => {}): Promise<void> {
  await hand.click(page.getByRole("button", { name: "Only service kubelet" }));
  await expect.poll(() => parameter(page, "query")).toContain('service="kubelet"');
  await look();
  await compareAcross(page, hand);
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
  await pictured(page, "kubelet-1-node");
  const hand = pointerOf(page);
  await playJump(page, hand, () => pictured(page, "kubelet-2-service"));
  await pictured(page, "kubelet-3-causes");
  await hand.click(tab(page, "Thread"));
  await threadsOf(page);
  await pictured(page, "kubelet-4-threads");
  await expect(page.getByTestId("verdict")).toContainText("tree::walk");
  await expect(page.getByTestId("verdict")).toBeInViewport({ ratio: 1 });
  hand.answered("S1, the kubelet jump", { acts: 3 });
});

test("S1 on a phone: the walk and its thread in 3 taps, all of it in sight", async ({ page, request }) => {
  await page.setViewportSize(PHONE);
  const jump = await kubeletJump(request, "s1-phone");
  await open(page, jump, jump.node);
  const hand = pointerOf(page);
  await hand.click(page.getByTitle("Choose a service", { exact: true }));
  await hand.click(page.locator(".siblings").getByRole("button", { name: /^kubelet/ }));
  // What comes next stands in sight, with nothing unfolded.
  await expect(page.getByTestId("largest-change")).toBeInViewport({ ratio: 1 });
  await compareAcross(page, hand);
  // Nothing of the line is cut: the thread's name stands at its end.
  const verdict = page.getByTestId("verdict");
  expect(await verdict.evaluate((line) => line.scrollHeight - line.clientHeight)).toBeLessThanOrEqual(1);
  hand.answered("S1, the kubelet jump", { acts: 3 });
});

test("S1 by keyboard alone, and on to the walk in the graph", async ({ page, request }) => {
  const jump = await kubeletJump(request, "s1-keys");
  await open(page, jump, jump.node);
  const hand = keysOf(page);
  await playJump(page, hand);
  await hand.click(page.getByTestId("changes").locator(".cause-name").first());
  await expect(page.getByTestId("reset-zoom")).toBeVisible();
  await expect.poll(() => parameter(page, "focus")).toMatch(/tree::walk$/);
  hand.answered("S1, the kubelet jump, by keys", { acts: 3 });
  // Tabs are one stop: arrows go through them.
  await page.getByRole("tab", { name: "Causes" }).focus();
  const thread = page.getByRole("tab", { name: "Thread" });
  while (!(await thread.evaluate((tab) => tab === document.activeElement))) await page.keyboard.press("ArrowRight");
  await threadsOf(page);
});

/** Whose time the selected function is: of two containers and their processes, as much as was put in. */
async function spentByTwo(page: Page): Promise<void> {
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
}

/** User and system time of lxcfs, as layers of their own. */
async function modesApart(page: Page): Promise<Locator[]> {
  const layers = page.getByTestId("layers").getByRole("listitem");
  const found: Locator[] = [];
  for (const [i, mode] of ["user", "system"].entries()) {
    const layer = layers.filter({ has: page.getByRole("button", { name: `Only service lxcfs, ${mode}` }) });
    const [cores = 0] = figures((await layer.locator(".layer-cores").textContent()) ?? "");
    expect(cores).toBeCloseTo((CONTAINERS.lxcfs[i] ?? 0) / SAMPLES_A_SECOND / MINUTE_S, 2);
    found.push(layer);
  }
  return found;
}

test("S2, zombie cgroups: container, process, and time in the kernel apart, in 4 clicks", async ({ page, request }) => {
  const slow = await zombieCgroups(request, "s2");
  await open(page, slow, slow.node);
  await pictured(page, "zombies-1-node");
  const hand = pointerOf(page);
  await hand.click(page.getByTestId("apart"));
  const top = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row").first();
  await expect(top).toContainText("mem_cgroup_nr_lru_pages");
  await pictured(page, "zombies-2-split");
  await hand.click(top);
  await pictured(page, "zombies-3-function");
  await hand.click(tab(page, "Spent by"));
  await spentByTwo(page);
  await pictured(page, "zombies-4-spent");
  for (const layer of await modesApart(page)) await expect(layer).toBeInViewport();
  hand.answered("S2, zombie cgroups", { acts: 4 });
});

test("S2 on a phone: whose time it is in 3 taps, user and system apart in 2 more", async ({ page, request }) => {
  await page.setViewportSize(PHONE);
  const slow = await zombieCgroups(request, "s2-phone");
  await open(page, slow, slow.node);
  const hand = pointerOf(page);
  await hand.click(tab(page, "Functions"));
  const top = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row").first();
  // Of a long name its end has room.
  await expect(top).toContainText("nr_lru_pages");
  await hand.click(top);
  await hand.click(tab(page, "Spent by"));
  await spentByTwo(page);
  await hand.click(unfolded(page, "chart"));
  await hand.click(page.getByTestId("apart"));
  for (const layer of await modesApart(page)) {
    // The list scrolls in itself: its largest layer is in sight, the others a stroke away.
    await layer.scrollIntoViewIfNeeded();
    await expect(layer).toBeInViewport();
  }
  hand.answered("S2, zombie cgroups", { acts: 5 });
});

/** The search's line: the part of all samples, and how much that is. */
async function entropyFound(page: Page): Promise<void> {
  const found = page.getByTestId("found");
  await expect(found.locator("b")).toHaveText(/^30(\.0)?\s%$/);
  await expect(found).toContainText(/0\.25\d? cores, 300 samples/);
  await expect(found).toBeInViewport({ ratio: 1 });
}

test("S3, ZFS that nobody uses: a click and the name tell the function's share", async ({ page, request }) => {
  const zfs = await unusedZfs(request, "s3");
  await open(page, zfs, zfs.node);
  await pictured(page, "zfs-1-node");
  const hand = pointerOf(page);
  await hand.click(page.getByTestId("search"));
  await hand.type("extract_entropy");
  await entropyFound(page);
  await pictured(page, "zfs-2-search");
  hand.answered("S3, ZFS", { acts: 1, letters: "extract_entropy".length });
});

test("S3 on a phone: the search is one tap further", async ({ page, request }) => {
  await page.setViewportSize(PHONE);
  const zfs = await unusedZfs(request, "s3-phone");
  await open(page, zfs, zfs.node);
  const hand = pointerOf(page);
  await hand.click(unfolded(page, "graph"));
  await hand.click(page.getByTestId("search"));
  await hand.type("extract_entropy");
  await entropyFound(page);
  hand.answered("S3, ZFS", { acts: 2, letters: "extract_entropy".length });
});

for (const size of [{ width: 1440, height: 900 }, LAPTOP, PHONE])
  test(`S4, half the jobs, at ${size.width}: CPU time of each process on both sides in 4 clicks`, async ({
    page,
    request,
  }) => {
    await page.setViewportSize(size);
    const jobs = await halfTheJobs(request, `s4-${size.width}`);
    await open(page, jobs, jobs.node, jobs.other);
    const hand = pointerOf(page);
    const isWide = size.width === 1440;
    if (isWide) await pictured(page, "jobs-1-nodes");
    await hand.click(tab(page, "Top lists"));
    const nodes = page.getByRole("region", { name: "Largest by node" });
    await expect(nodes).toBeVisible();
    if (isWide) await pictured(page, "jobs-2-lists");
    await hand.click(nodes.getByRole("button", { name: `What can be done with node ${jobs.node}` }));
    await hand.click(page.getByRole("menuitem", { name: "Compare with the rest" }));
    await expect.poll(() => parameter(page, "view")).toBe("compare");
    await expect(tab(page, "Process")).toBeVisible();
    if (isWide) await pictured(page, "jobs-3-compare");
    await hand.click(tab(page, "Process"));
    const table = page.getByRole("grid", { name: "Both windows by process" });
    const rows = table.locator(".vtable-row");
    await expect(rows).toHaveCount(Object.keys(JOBS).length);
    for (const head of ["CPU A", "CPU B"])
      await expect(table.getByRole("columnheader", { name: head })).toBeInViewport({ ratio: 0.9 });
    for (const [process, seconds] of Object.entries(JOBS)) {
      const row = rows.filter({ hasText: process });
      for (const [i, time] of seconds.entries()) {
        const cell = row.getByRole("gridcell").nth(1 + i);
        await expect(cell).toHaveText(time === 0 ? /^0\s*s?$/ : new RegExp(`^${time}(\\.0+)?\\s*s$`));
        await expect(cell).toBeInViewport({ ratio: 0.9 });
        // Its text has room.
        expect(await cell.evaluate((box) => box.scrollWidth - box.clientWidth)).toBeLessThanOrEqual(0);
      }
    }
    if (isWide) await pictured(page, "jobs-4-processes");
    // Two selections at one time: nothing is said as if the one became the other.
    await expect(page.locator(".graph")).not.toContainText("→");
    hand.answered("S4, half the jobs", { acts: 4 });
    // Two selections are judged by shares; in cores, too, where somebody asks for them.
    if (size === PHONE) return;
    await page.getByTestId("pair-unit").selectOption("cores");
    await expect(rows.filter({ hasText: "job-runner" })).toContainText(/0\.750.*0\.333/);
  });

/** What ran before the stalls, by thread: the samples that were put there, and of no other thread. */
async function ranBefore(page: Page): Promise<Locator> {
  const before = STALLS.times * STALLS.before;
  const title = page.getByTestId("before-title");
  await expect(title).toContainText(`${before} samples in the 100 ms before functions named net_rx_action`);
  const threads = page.getByTestId("before-threads").getByRole("button");
  await expect(threads).toHaveText([`cadvisor ${before}`]);
  return threads;
}

test("S5, stalls of 100 ms: what ran before on that CPU, in 3 clicks and the name", async ({ page, request }) => {
  const stalls = await networkStalls(request, "s5");
  await open(page, stalls, stalls.node);
  await pictured(page, "stalls-1-node");
  const hand = pointerOf(page);
  await hand.click(page.getByTestId("search"));
  await hand.type("net_rx_action");
  await expect(page.getByTestId("found").locator("b")).toBeVisible();
  // Enter goes to the match, and selects it.
  await page.keyboard.press("Enter");
  await pictured(page, "stalls-2-frame");
  await hand.click(page.getByTestId("frame-panel").getByRole("button", { name: "Preceding samples" }));
  await expect(page.getByTestId("offers")).toBeVisible();
  await pictured(page, "stalls-3-cpus");
  await hand.click(page.getByTestId("offers").getByRole("button", { name: `CPU 11 ${STALLS.times} samples` }));
  await expect.poll(() => parameter(page, "query")).toContain('cpu="11"');
  await expect(await ranBefore(page)).toBeInViewport({ ratio: 1 });
  await pictured(page, "stalls-4-before");
  // And in what: the read, in the graph's table.
  const top = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row").first();
  await expect(top).toContainText("memcg_stat_show");
  hand.answered("S5, network stalls", { acts: 3, letters: "net_rx_action".length });
});

test("S5 on a phone: the search and the frame are one tap further each", async ({ page, request }) => {
  await page.setViewportSize(PHONE);
  const stalls = await networkStalls(request, "s5-phone");
  await open(page, stalls, stalls.node);
  const hand = pointerOf(page);
  await hand.click(unfolded(page, "graph"));
  await hand.click(page.getByTestId("search"));
  await hand.type("net_rx_action");
  await expect(page.getByTestId("found").locator("b")).toBeVisible();
  await page.keyboard.press("Enter");
  await hand.click(tab(page, "Frame"));
  await hand.click(page.getByTestId("frame-panel").getByRole("button", { name: "Preceding samples" }));
  await hand.click(page.getByTestId("offers").getByRole("button", { name: `CPU 11 ${STALLS.times} samples` }));
  await expect.poll(() => parameter(page, "query")).toContain('cpu="11"');
  // Below the lanes, a stroke away.
  await (await ranBefore(page)).scrollIntoViewIfNeeded();
  hand.answered("S5, network stalls", { acts: 5, letters: "net_rx_action".length });
});
