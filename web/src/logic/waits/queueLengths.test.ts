import { expect, test } from "vitest";
import type { QueueLine, RunQueueAnswer } from "../../api/types.ts";
import {
  hasKinds,
  ofQueues,
  queueCourse,
  queueHeight,
  queueLabel,
  queuePath,
  queueRow,
  queueStep,
  sortedQueueRows,
  uncounted,
} from "./queueLengths.ts";

const line = (value: string, longest: (number | null)[]): QueueLine => ({
  value,
  waits: 10,
  total_ns: 5_000_000_000,
  p50_ns: 20_000,
  p99_ns: null,
  longest_ns: Math.max(...longest.map((ns) => ns ?? 0)),
  steps: {
    waits: longest.map((ns) => (ns === null ? 0 : 5)),
    total_ns: longest.map((ns) => ns ?? 0),
    p50_ns: longest.map((ns) => (ns === null ? null : 20_000)),
    p99_ns: longest,
    longest_ns: longest.map((ns) => ns ?? 0),
  },
});

const answer: RunQueueAnswer = {
  query: "{}",
  from: 0,
  until: 30_000,
  step_ms: 10_000,
  by: "service",
  times: [0, 10_000, 20_000],
  batches: 6,
  all: line("", [1_000_000, null, 99_000_000]),
  lines: [],
  others: 0,
};

test("a thread's waits are asked for as its program's, and all others by their label", () => {
  expect(["thread", "tid", "tgid", "mode", "wait.class"].map(queueLabel)).toEqual(Array(5).fill("process"));
  const counted = ["service", "node", "cpu", "cluster", "version", "acme.team"];
  expect(counted.map(queueLabel)).toEqual(counted);
});

test("of threads alone nothing is counted", () => {
  expect(uncounted('{service="web",node="a"}')).toBe(undefined);
  expect(uncounted('{service="web",thread="a"}')).toBe("thread");
  expect(uncounted('{cpu="3",service="web"}')).toBe(undefined);
  expect(uncounted('{cluster="eu",version="1.4","acme.team"="red"}')).toBe(undefined);
  expect(uncounted('{service="web",woken.service="db"}')).toBe("woken.service");
});

test("kinds of other waits make no difference to waits for a CPU", () => {
  const query = '{service="web",wait.class!="timer",wait.state!="idle"}';
  expect(uncounted(query)).toBe(undefined);
  expect(ofQueues(query)).toBe('{service="web"}');
  expect(ofQueues('{wait.class="lock"}')).toBe("");
  expect([hasKinds(query), hasKinds('{service="web"}'), hasKinds("")]).toEqual([true, false, false]);
  expect(uncounted('{wait.class="lock",thread="a"}')).toBe("thread");
});

test("lines are broken where nothing waited, on a scale of powers of ten", () => {
  const course = queueCourse(answer);
  expect([course.least, course.most]).toEqual([-5, -1]);
  expect(queueHeight(1e-5, course)).toBeCloseTo(0);
  expect(queueHeight(1e-3, course)).toBeCloseTo(0.5);
  expect(queueHeight(5, course)).toBe(1);
  expect(queuePath(course, "longest", 300, 100)).toBe("M0.0 50.0H100.0M200.0 0.1H300.0");
  expect([0, 0.5, 0.99, 1].map((share) => queueStep(course, share))).toEqual([0, 1, 2, 2]);
});

test("without waits there is a scale all the same", () => {
  const course = queueCourse({ ...answer, all: line("", [null, null, null]) });
  expect([course.least, course.most]).toEqual([-6, -3]);
  expect(queuePath(course, "median", 300, 100)).toBe("");
});

test("rows have threads as a mean over the window, and sort with what is not known last", () => {
  const row = queueRow(line("web", [1_000_000]), 10_000);
  expect(row).toEqual({ name: "web", waits: 10, threads: 0.5, median: 20e-6, p99: null, longest: 0.001, idle: null });
  const rows = [row, { ...row, name: "db", p99: 0.01 }];
  expect(sortedQueueRows(rows, { key: "p99", descending: true }).map(({ name }) => name)).toEqual(["db", "web"]);
  expect(sortedQueueRows(rows, { key: "name", descending: false }).map(({ name }) => name)).toEqual(["db", "web"]);
});

test("a CPU's row says how idle it was, where its ticks are told", () => {
  const idle = (ticks: number | null, idleTicks: number | null) =>
    queueRow({ ...line("3", [null]), ticks, idle_ticks: idleTicks }, 10_000).idle;
  expect([idle(200, 150), idle(200, 0), idle(200, 201)]).toEqual([0.75, 0, 1]);
  expect([idle(null, null), idle(0, 0)]).toEqual([null, null]);
});
