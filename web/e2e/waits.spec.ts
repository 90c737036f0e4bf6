/**
 * Where threads wait: a program whose threads do one thing each, so that what the page says of each is known. One
 * holds a lock and sleeps, one wants it, one sleeps for long, one runs.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { type APIRequestContext, request } from "@playwright/test";
import { serious } from "./axe.ts";
import { at, expect, held, parameter, placeOf, test } from "./stack.ts";
import { warn } from "./warned.ts";
import { waitCovered } from "./windows.ts";

/** Of threads the name is what tells them. */
const PROGRAM = `
import ctypes, os, threading, time
name = lambda text: ctypes.CDLL(None).prctl(15, text.encode(), 0, 0, 0)
lock = threading.Lock()
def holds():
    name("wk-holds")
    while True:
        with lock:
            time.sleep(0.5)
        time.sleep(0.001)
def wants():
    name("wk-wants")
    while True:
        with lock:
            pass
def sleeps():
    name("wk-sleeps")
    while True:
        time.sleep(0.9)
def runs():
    name("wk-runs")
    while True:
        pass
# A process of its own: threads of one program wait for its interpreter, too.
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
    runs()
for thread in (holds, wants, sleeps):
    threading.Thread(target=thread, daemon=True).start()
time.sleep(600)
`;
const RUN_MS = 12_000;
const THREADS = '{thread=~"wk-.*"}';

let program: ChildProcess | undefined;
let window = { from: 0, until: 0 };
let server: APIRequestContext;

interface Told {
  parts: { type: string; class: string }[];
  rows: { name: string; seconds: number[] }[];
  exposure: { observed_seconds: number };
}

test.describe.configure({ mode: "serial" });

test.beforeAll(async ({ baseURL }) => {
  server = await request.newContext({ baseURL: baseURL ?? "" });
  program = spawn("python3", ["-c", PROGRAM], { stdio: "ignore" });
  const from = Math.ceil(Date.now() / 1000) * 1000 + 1000;
  window = { from, until: from + RUN_MS };
  await waitCovered(server, window.until);
  program.kill("SIGKILL");
});

test.afterAll(async () => {
  program?.kill("SIGKILL");
  await server.dispose();
});

/** Thread-seconds per second of each thread, by part. */
async function levels(query = THREADS): Promise<Record<string, Record<string, number>>> {
  const given = { from: String(window.from), until: String(window.until), by: "thread", query };
  const answer = (await (await server.get(`/api/v1/thread_time?${new URLSearchParams(given)}`)).json()) as Told;
  const seconds = answer.exposure.observed_seconds;
  return Object.fromEntries(
    answer.rows.map((row) => [
      row.name,
      Object.fromEntries(
        answer.parts.map(({ type, class: of }, i) => [of === "" ? type : of, (row.seconds[i] ?? 0) / seconds]),
      ),
    ]),
  );
}

test("threads' time says what each thread did, by name, by bar and over time", async ({ page }) => {
  const told = await levels();
  expect(Object.keys(told).sort()).toEqual(["wk-holds", "wk-runs", "wk-sleeps", "wk-wants"]);
  // What a thread is made for is most of its sleep, however long it had to wait for a CPU; of a few waits the sum is
  // known to some periods.
  const made = { "wk-holds": "timer", "wk-sleeps": "timer", "wk-wants": "lock" } as const;
  for (const [name, part] of Object.entries(made)) {
    const { cpu = 0, run_queue: queued = 0, ...asleep } = told[name] ?? {};
    const all = Object.values(asleep).reduce((sum, one) => sum + one, 0);
    expect(asleep[part], `${name}: ${part}`).toBeGreaterThan(0.6 * all);
    expect(cpu + queued + all, `${name}: all of its time`).toBeGreaterThan(0.5);
    expect(cpu + queued + all, `${name}: all of its time`).toBeLessThan(1.6);
  }
  const runs = told["wk-runs"] ?? {};
  expect((runs.cpu ?? 0) + (runs.run_queue ?? 0)).toBeGreaterThan(0.5);

  await page.goto(at(window, { view: "threads", by: "thread", query: THREADS }));
  const rows = page.getByRole("grid", { name: /Threads' time by thread/ });
  await expect(rows.getByRole("row")).toHaveCount(5);
  // Who runs most comes first; the bar is text, too.
  await expect(rows.locator("[data-row='0']")).toContainText("wk-runs");
  const wants = rows.locator("[data-row]", { hasText: "wk-wants" });
  await expect(wants.locator(".thread-bar")).toContainText(/Lock [01]\.\d+ \(\d/);
  await expect(page.getByTestId("thread-parts")).toContainText("Running");
  await expect(page.getByRole("heading", { name: "Threads of all that is selected" })).toBeVisible();
  expect(await serious(page)).toEqual([]);

  // By keys: the course of a row, its selection, and back.
  await rows.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Threads of thread wk-runs" })).toBeVisible();
  await expect.poll(() => parameter(page, "row")).toBe("=wk-runs");
  await page.getByTestId("narrow-row").click();
  await expect.poll(() => parameter(page, "query")).toBe('{thread="wk-runs"}');
  await expect.poll(() => parameter(page, "row")).toBe(null);
  await page.goBack();
  await expect.poll(() => parameter(page, "row")).toBe("=wk-runs");
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await serious(page)).toEqual([]);
});

test("the time of threads is zoomed by the wheel with Ctrl and by keys, as on every chart; Back undoes it", async ({
  page,
}) => {
  const length = () => Number(parameter(page, "until")) - Number(parameter(page, "from"));
  const address = at(window, { view: "threads", by: "thread", query: THREADS });
  await page.goto(address);
  const brush = page.getByTestId("brush");
  const box = await placeOf(brush);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -300);
  await page.keyboard.up("Control");
  await expect.poll(length).toBeLessThan(RUN_MS * 0.6);
  // The answer that Back asks for arrives in the middle of the next gesture, and does not undo it.
  const release = await held(page, "**/api/v1/thread_time?*");
  await page.goBack();
  await expect.poll(length).toBe(RUN_MS);
  await placeOf(brush);
  await brush.focus();
  await page.keyboard.press("+");
  release();
  await expect.poll(length).toBeLessThan(RUN_MS * 0.6);
  await expect(page.locator(".thread-bar").first()).toBeVisible();
});

test("how good the data of threads' time is stands above it in a word, and unfolds", async ({ page }) => {
  const chip = page.getByTestId("fold-data");
  await warn(page);
  await page.goto(at(window, { view: "threads", by: "thread", query: THREADS }));
  await expect(chip).toHaveAccessibleName(/^Data: check \(\d\) .*coverage gap.* 2 samples lost/);
  await chip.click();
  await expect(page.locator(".quality .figure", { hasText: "lost" })).toContainText("ring_full 2");
  await expect(page.locator(".thread-bar").first()).toBeVisible();
  expect(await serious(page)).toEqual([]);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("waits for a CPU have the course of the chosen row, whatever kinds of waits are left out", async ({ page }) => {
  const ofProgram = '{process=~"python.*"}';
  await page.goto(at(window, { view: "threads", by: "process", query: ofProgram }));
  const queues = page.getByTestId("queue-lengths");
  const course = queues.getByRole("img", { name: /^Waits for a CPU over time: Longest/ });
  await expect(course).toBeVisible();
  // Bursts and versions are marked as on all charts.
  await expect(queues.getByTestId("markers")).toHaveCount(1);
  const rows = queues.getByRole("grid", { name: "Waits for a CPU by process. Enter shows the row over time." });
  const asked = page.waitForRequest(
    (one) =>
      one.url().includes("/api/v1/run_queue?") &&
      /^\{process="python[^"]*"\}$/.test(new URL(one.url()).searchParams.get("query") ?? ""),
  );
  await rows.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await asked;
  await expect(queues.getByRole("heading", { name: /by their length: process python/ })).toBeVisible();
  await expect(course).toBeVisible();
  expect(await serious(page)).toEqual([]);
  // The same row again leaves it.
  await rows.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "row")).toBe(null);
  const kinds = '{process=~"python.*",wait.class!="timer"}';
  await page.goto(at(window, { view: "threads", by: "process", query: kinds }));
  await expect(course).toBeVisible();
  await expect(page.getByTestId("queue-all-kinds")).toBeVisible();
  // Nothing is counted by thread: then they stay those of the selection, and it is said.
  await page.goto(at(window, { view: "threads", by: "thread", query: ofProgram, row: "=wk-runs" }));
  await expect(page.getByTestId("queue-row-uncounted")).toContainText("not counted by thread");
  await expect(course).toBeVisible();
});

test("beside waits for each CPU stands how idle it was", async ({ page }) => {
  await page.goto(at(window, { view: "threads", by: "cpu" }));
  const rows = page.getByTestId("queue-lengths").getByRole("grid", { name: /^Waits for a CPU by cpu/ });
  await expect(rows.getByRole("columnheader", { name: /^Idle/ })).toBeVisible();
  await expect(rows.locator("[data-row='0']")).toContainText(/\d\u202f%/);
  await page.goto(at(window, { view: "threads", by: "service" }));
  const ofServices = page.getByTestId("queue-lengths").getByRole("grid", { name: /^Waits for a CPU by service/ });
  await expect(ofServices.getByRole("columnheader", { name: /^Longest/ })).toBeVisible();
  await expect(ofServices.getByRole("columnheader", { name: /^Idle/ })).toHaveCount(0);
});

test("waits of one program are told by CPU, with how idle each was, and those for one CPU by program", async ({
  page,
}) => {
  await page.goto(at(window, { view: "threads", by: "cpu", query: '{process=~"python.*"}' }));
  const queues = page.getByTestId("queue-lengths");
  const byCpu = queues.getByRole("grid", { name: "Waits for a CPU by cpu. Enter shows the row over time." });
  await expect(byCpu.getByRole("columnheader", { name: /^Idle/ })).toBeVisible();
  await expect(byCpu.locator("[data-row='0']")).toContainText(/\d\u202f%/);
  const cpu = await byCpu.locator("[data-row='0'] .thread-name bdi").getAttribute("title");
  expect(cpu).toMatch(/^\d+$/);
  await page.goto(at(window, { view: "threads", by: "process", query: `{process=~"python.*",cpu="${cpu}"}` }));
  const byProcess = queues.getByRole("grid", { name: /^Waits for a CPU by process/ });
  await expect(byProcess.locator("[data-row='0']")).toContainText("python");
  await expect(page.getByTestId("queue-uncounted")).toHaveCount(0);
});

test("waits are left out by a click, and every number follows", async ({ page }) => {
  await page.goto(at(window, { type: "off_cpu", query: THREADS, by: "thread" }));
  await expect(page.getByRole("button", { name: /^Profile type: Waiting \W$/ })).toBeVisible();
  const chips = page.getByTestId("wait-chips");
  const timer = chips.getByRole("button", { name: /^Timer / });
  const figures = page.locator(".chart .figures");
  await expect(figures).toContainText("threads waiting");
  // A capacity is of CPUs.
  await expect(page.getByText("Scale to capacity")).toHaveCount(0);
  const level = async () => Number((await figures.textContent())?.split(" ")[0]);
  const all = await level();
  expect(all).toBeGreaterThan(1);
  await timer.click();
  await expect.poll(() => parameter(page, "query")).toBe('{thread=~"wk-.*",wait.class!="timer"}');
  await expect(timer).toHaveAttribute("aria-pressed", "false");
  await expect.poll(level).toBeLessThan(0.8 * all);
  await timer.click();
  await expect.poll(() => parameter(page, "query")).toBe(THREADS);
  await chips.getByRole("button", { name: "Only Lock" }).click();
  await expect.poll(() => parameter(page, "query")).toBe('{thread=~"wk-.*",wait.class="lock"}');
  await expect(page.getByTestId("layers")).toContainText("wk-wants");
  await expect(page.getByTestId("layers")).not.toContainText("wk-sleeps");
  await page.goto(at(window, { type: "off_cpu", query: THREADS, by: "thread" }));
  const asked = page.waitForRequest((one) => /\/flamegraph\?.*min_wait=1000000000/.test(one.url()));
  await page.getByTestId("least").selectOption("1000");
  await asked;
  await expect.poll(() => parameter(page, "least")).toBe("1000");
  // By construction it sleeps 0.9 s each time; what is looked at meanwhile had waited less by then.
  const sleeps = { type: "off_cpu", query: '{thread="wk-sleeps"}', by: "thread" };
  await page.goto(at(window, sleeps));
  await expect.poll(level).toBeGreaterThan(0.3);
  const asleep = await level();
  await page.getByTestId("least").selectOption("100");
  await expect.poll(() => parameter(page, "least")).toBe("100");
  await expect.poll(level).toBeGreaterThan(0.6 * asleep);
  await page.getByTestId("least").selectOption("");
  await page.getByTestId("most").selectOption("100");
  await expect.poll(level).toBeLessThan(0.4 * asleep);
  await page.getByTestId("most").selectOption("1000");
  await expect.poll(level).toBeGreaterThan(0.6 * asleep);
  // No wait is as long: what leaves nothing can be taken back where it was chosen.
  await page.goto(at(window, { ...sleeps, least: "10000" }));
  await expect(page.getByText("No samples in this window.")).toBeVisible();
  await page.getByTestId("least").selectOption("");
  await expect.poll(level).toBeGreaterThan(0.3);
  await page.goto(at(window, { ...sleeps, least: "10000" }));
  await page.getByRole("button", { name: "Count waits of any length" }).click();
  await expect.poll(level).toBeGreaterThan(0.3);
  await expect(page.locator('[aria-busy="true"]')).toHaveCount(0);
  expect(await serious(page)).toEqual([]);
});

test("kernel threads without work are left out by one click", async ({ page }) => {
  await page.goto(at(window, { type: "off_cpu" }));
  await page.getByTestId("idle-waits").click();
  await expect.poll(() => parameter(page, "query")).toBe('{wait.state!="idle"}');
  await page.getByTestId("idle-waits").click();
  await expect.poll(() => parameter(page, "query")).toBe(null);
});

test("a timeline shows waits between the samples of a thread, in words", async ({ page }) => {
  await page.goto(at(window, { view: "timeline", query: '{thread="wk-wants"}' }));
  const waits = page.getByTestId("waits");
  await expect(waits).toBeVisible();
  await waits.focus();
  await page.keyboard.press("Home");
  const said = page.getByTestId("selected-wait");
  await expect(said).toHaveText(/^wk-wants \(\d+\) in \w+\(\), waited for (another thread|the CPU) <?\d/);
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => parameter(page, "wait")).toMatch(/^\d+(\.\d+)?-\d+$/);
  const chosen = await said.textContent();
  // Where it waited, for what and how long: the list says it in the same words.
  const words = / (in \w+\(\), waited for (?:another thread|the CPU))/.exec(chosen ?? "")?.[1] ?? "";
  expect(words).not.toBe("");
  await page.reload();
  await expect(said).toHaveText(chosen ?? "");
  // One thread alone has what this one waits for.
  const list = page.getByRole("grid", { name: "Samples and waits in the order of time" });
  await expect(list).toContainText(/waited for another thread <?\d.*, woken by wk-holds \(python[^)]*\), in /);
  await page.getByTestId("waits").focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "zoom")).not.toBe(null);
  await expect(list).toContainText(words);
  expect(await serious(page)).toEqual([]);
  await page.getByTestId("waits-shown").click();
  await expect(page.getByTestId("waits")).toHaveCount(0);
  await expect.poll(() => parameter(page, "waits")).toBe("0");
});

test("who ended waits stands above them as a second graph", async ({ page }) => {
  // One thread alone has what this one waits for.
  const wants = { type: "off_cpu", query: '{thread="wk-wants",wait.class="lock"}' };
  const ask = async (more: Record<string, string>) => {
    const given = { ...wants, from: String(window.from), until: String(window.until), ...more };
    return (await server.get(`/api/v1/flamegraph?${new URLSearchParams(given)}`)).text();
  };
  const folded = await ask({ stacks: "wakers", group: "process,thread", format: "collapsed" });
  const wakers = folded
    .trim()
    .split("\n")
    .map((line) => {
      const [process = "", thread = ""] = line.split(";");
      return { process, thread, counts: Number(line.slice(line.lastIndexOf(" "))) };
    });
  const sum = (of: typeof wakers) => of.reduce((all, { counts }) => all + counts, 0);
  const holder = wakers.filter(({ thread }) => thread === "wk-holds");
  const others = wakers.filter(({ thread }) => thread !== "wk-holds" && thread !== "[no thread]");
  expect(sum(holder)).toBeGreaterThan(0);
  expect(sum(others)).toBeLessThan(0.1 * sum(holder));
  // Together with the rest they are all of the waits.
  const [own, woken] = [JSON.parse(await ask({})), JSON.parse(await ask({ stacks: "wakers" }))];
  expect(woken.samples).toBe(own.samples);
  expect(woken.wakers.known + woken.wakers.unknown).toBe(own.samples);

  await page.goto(at(window, { ...wants, by: "thread" }));
  const tool = page.getByTestId("woken-tool");
  await expect(tool).toHaveAttribute("aria-pressed", "false");
  await expect(page.getByTestId("woken")).toHaveCount(0);
  await tool.click();
  await expect.poll(() => parameter(page, "woken")).toBe("1");
  const above = page.getByTestId("woken");
  const below = page.getByTestId("waiting").getByTestId("flamegraph");
  await expect(above.getByTestId("woken-known")).toHaveText(/^known of /);
  await expect(below).toBeVisible();
  expect(await serious(page)).toEqual([]);
  // The search is one.
  await page.getByTestId("search").fill("e");
  await expect(above.getByTestId("woken-found")).toHaveText(/^found in /);
  // What is zoomed below is what the upper one is of.
  const asked = page.waitForRequest((one) => /stacks=wakers.*match_path=/.test(one.url()));
  const { width } = (await below.boundingBox()) ?? { width: 0 };
  await below.click({ position: { x: width / 2, y: 19 + 9 } });
  await asked;
  await expect(above.getByTestId("woken-known")).toHaveText(/: known of /);
  await page.goBack();
  await expect(above.getByTestId("woken-known")).toHaveText(/^known of /);
  await tool.click();
  await expect(above).toHaveCount(0);
  await expect(page.getByTestId("flamegraph")).toHaveCount(1);

  // A frame of the upper one is zoomed by itself, and by keys.
  const waker = `process=${holder[0]?.process ?? ""};thread=wk-holds`;
  await page.goto(at(window, { ...wants, by: "thread", woken: "1", waker }));
  await expect(above.getByTestId("reset-waker")).toBeVisible();
  const canvas = above.getByTestId("flamegraph");
  await canvas.focus();
  await page.keyboard.press("ArrowUp");
  await expect(above.getByTestId("selected-waker")).toContainText(/^thread wk-holds, .*: waits that it ended$/);
  await page.keyboard.press("Escape");
  await expect.poll(() => parameter(page, "waker")).toBe(null);
  await expect(above.getByTestId("reset-waker")).toHaveCount(0);
  await expect.poll(() => parameter(page, "focus")).toBe(null);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(canvas).toBeVisible();
  await expect(below).toBeVisible();
  expect(await serious(page)).toEqual([]);
  await above.getByRole("button", { name: "Hide who ended these waits" }).click();
  await expect.poll(() => parameter(page, "woken")).toBe(null);
});

test("without a choice CPU time is looked at", async ({ page }) => {
  await page.goto(at(window, { query: THREADS }));
  await expect(page.getByRole("button", { name: "Profile type: CPU time" })).toBeVisible();
  await expect(page.getByTestId("wait-chips")).toHaveCount(0);
  await expect(page.locator(".chart .figures")).toContainText("cores");
});
