/**
 * A real program, built twice and run one build after the other, as a roll-out does: in the second build one function
 * takes sixteen times as long, and all else is as it was. Nobody tells Stakeout anything of it: the builds are told
 * apart by their build ids.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type APIRequestContext, request } from "@playwright/test";
import { at, expect, parameter, test } from "./stack.ts";
import { waitCovered } from "./windows.ts";

/**
 * Two functions a turn, each a loop of a known length. Turns begin at a pace of their own, however long they take: what
 * did not change takes the same of a second in both builds. The pace is no multiple of the agent's period. With an
 * argument it says how many rounds this machine does in a millisecond.
 */
const PROGRAM = `
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void parse_request(unsigned long rounds) {
  for (unsigned long i = 0; i < rounds; i++) sink += i;
}
__attribute__((noinline)) static void sum_of_body(void) {
  for (unsigned long i = 0; i < ROUNDS; i++) sink ^= i;
}
static unsigned long rounds_per_ms(void) {
  struct timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  parse_request(20000000);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  double ms = (end.tv_sec - begin.tv_sec) * 1e3 + (end.tv_nsec - begin.tv_nsec) / 1e6;
  return 20000000 / ms;
}
int main(int count, char **arguments) {
  struct timespec next;
  if (count > 1) return printf("%lu", rounds_per_ms()) < 0;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (;;) {
    parse_request(PARSE_ROUNDS);
    sum_of_body();
    next.tv_nsec += 17300000;
    if (next.tv_nsec >= 1000000000) {
      next.tv_nsec -= 1000000000;
      next.tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
  }
}
`;
/** Milliseconds of `sum_of_body` in a turn of each build, and of `parse_request` in both. */
const SUM_MS = [0.5, 8];
const PARSE_MS = 2;
const RUN_MS = 12_000;
/** What the label `version` has of a build id. */
const DIGITS = 12;

const service = `built-${process.pid}`;
const query = `{service="${service}"}`;
let folder = "";
let running: ChildProcess | undefined;
let server: APIRequestContext;
let range = { from: 0, until: 0 };
/** When the second build took over; Unix milliseconds. */
let change = 0;
let versions: string[] = [];

/** Builds it into a folder of its own, so that both have one name; gives its path and what tells it apart. */
function built(rounds: number, parseRounds: number): { path: string; version: string } {
  const own = join(folder, String(rounds));
  mkdirSync(own);
  const [source, path] = [join(own, "main.c"), join(own, service)];
  writeFileSync(source, PROGRAM);
  const flags = [
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-Wl,--build-id=sha1",
    `-DROUNDS=${rounds}`,
    `-DPARSE_ROUNDS=${parseRounds}`,
  ];
  execFileSync("cc", [...flags, "-o", path, source]);
  const notes = execFileSync("readelf", ["-n", path], { encoding: "utf8" });
  return { path, version: /Build ID: ([0-9a-f]+)/.exec(notes)?.[1]?.slice(0, DIGITS) ?? "" };
}

const started = (path: string) =>
  spawn(path, { stdio: "ignore", env: { ...process.env, OTEL_SERVICE_NAME: service, OTEL_RESOURCE_ATTRIBUTES: "" } });

/** The functions that a build spent its time in, by what they took themselves. */
async function functionsOf(version: string): Promise<string[]> {
  const asked = { ...{ from: String(range.from), until: String(range.until) }, by: "function" };
  const selector = `{service="${service}",version="${version}"}`;
  const answer = await server.get(`/api/v1/top?${new URLSearchParams({ ...asked, query: selector })}`);
  expect(answer.status(), await answer.text()).toBe(200);
  return ((await answer.json()) as { rows: { name: string }[] }).rows.map(({ name }) => name);
}

test.beforeAll(async ({ baseURL }) => {
  server = await request.newContext({ baseURL: baseURL ?? "" });
  folder = mkdtempSync(join(tmpdir(), "stakeout-builds-"));
  // By time and not by rounds: on a fast machine there would be too few samples to tell a function by.
  const perMs = Number(execFileSync(built(1, 1).path, ["rounds"], { encoding: "utf8" }));
  const builds = SUM_MS.map((ms) => built(Math.round(ms * perMs), Math.round(PARSE_MS * perMs)));
  versions = builds.map(({ version }) => version);
  const from = Math.ceil(Date.now() / 1000) * 1000;
  for (const [i, { path }] of builds.entries()) {
    running?.kill("SIGKILL");
    running = started(path);
    if (i > 0) change = Date.now();
    range = { from, until: Math.ceil(Date.now() / 1000) * 1000 + RUN_MS };
    await waitCovered(server, range.until);
  }
  running?.kill("SIGKILL");
  // Names come behind the samples.
  for (const version of versions)
    await expect.poll(() => functionsOf(version)).toEqual(expect.arrayContaining(["parse_request", "sum_of_body"]));
});

test.afterAll(async () => {
  running?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
  await server.dispose();
});

test("a program built twice: its marker is there by itself, and the function that got slower is named", async ({
  page,
}) => {
  const [older = "", newer = ""] = versions;
  expect(older).toMatch(/^[0-9a-f]{12}$/);
  expect(newer).toMatch(/^[0-9a-f]{12}$/);
  expect(newer).not.toBe(older);
  await page.goto(at(range, { query }));
  // Of another flow there may be a burst at the same time: it is another kind of marker.
  const sign = page
    .getByTestId("markers")
    .first()
    .getByRole("button", { name: /version/ });
  await expect(sign).toHaveCount(1);
  await sign.click();
  const marker = page
    .getByTestId("marker-panel")
    .getByRole("listitem")
    .filter({ hasText: `version=${newer}` });
  await expect(marker).toHaveCount(1);
  await expect(marker).toContainText(`service=${service}`);
  await marker.getByRole("button", { name: "Compare versions" }).click();

  await expect.poll(() => parameter(page, "view")).toBe("compare");
  expect(parameter(page, "baseQuery")).toContain(`version="${older}"`);
  expect(parameter(page, "query")).toContain(`version="${newer}"`);
  const number = (name: string) => Number(parameter(page, name));
  expect(number("until") - number("from")).toBe(number("baseUntil") - number("baseFrom"));
  // Each build on its own side of the moment at which the second took over.
  expect(number("baseUntil")).toBeLessThanOrEqual(change + 1_000);
  expect(number("from")).toBeGreaterThanOrEqual(change - 1_000);
  await expect(page.getByTestId("said")).toContainText(`A is ${older}`);
  await expect(page.getByTestId("said")).toContainText(`B is ${newer}`);

  await expect(page.getByTestId("verdict")).toContainText(/causes? \(.*\): sum_of_body/);
  await expect(page.getByTestId("changes").locator(".cause-name").first()).toContainText("sum_of_body");
  await page.getByRole("tab", { name: "Functions", exact: true }).click();
  const rows = page.getByRole("grid", { name: "Functions of both windows" }).locator(".vtable-row");
  // What changed most stands first.
  await expect(rows.first()).toContainText("sum_of_body");
  await expect(rows.first()).toHaveClass(/grew/);
});
