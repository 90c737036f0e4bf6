import { describe, expect, it } from "vitest";
import type { ThreadTimeAnswer } from "../../api/types.ts";
import { inOrder, partKey, partOf } from "./parts.ts";
import { hasWaits, partStack, sortedRows, threadTimeOf } from "./threadTime.ts";

const answer: ThreadTimeAnswer = {
  from: 0,
  until: 2_000,
  by: "service",
  step_ms: 1_000,
  times: [0, 1_000],
  covered: [1, 1],
  exposure: { observed_seconds: 2, observed_cpu_seconds: 4, gaps: [], nodes: 1, idle_share: 0 },
  parts: [
    { type: "cpu", class: "", seconds: 1, rates: [0.25, 0.75] },
    { type: "run_queue", class: "", seconds: 0.5, rates: [0.5, 0] },
    { type: "off_cpu", class: "timer", seconds: 4, rates: [2, 2] },
    { type: "off_cpu", class: "lock", seconds: 2, rates: [2, 0] },
  ],
  rows: [
    { name: "shop", seconds: [0.4, 0.5, 4, 0] },
    { name: "db", seconds: [0.6, 0, 0, 2] },
  ],
  count: 2,
  complete: true,
};

describe("threads' time", () => {
  it("has parts in the order of their meaning, with threads and shares", () => {
    const { parts, seconds } = threadTimeOf(answer);
    expect(parts.map(({ key, level }) => [key, level])).toEqual([
      ["cpu", 0.5],
      ["run_queue", 0.25],
      ["lock", 1],
      ["timer", 2],
    ]);
    expect(seconds).toBe(7.5);
    expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });

  it("has rows whose parts add up", () => {
    const told = threadTimeOf(answer);
    const [shop, db] = told.rows;
    expect(shop).toMatchObject({ running: 0.2, queued: 0.25, waiting: 2, level: 2.45 });
    expect(db).toMatchObject({ running: 0.3, queued: 0, waiting: 1, levels: [0.3, 0, 1, 0] });
    const names = (key: "running" | "name" | "threads", descending: boolean) =>
      sortedRows(told.rows, { key, descending }).map(({ name }) => name);
    expect(names("running", true)).toEqual(["db", "shop"]);
    expect(names("threads", true)).toEqual(["shop", "db"]);
    expect(names("name", true)).toEqual(["shop", "db"]);
  });

  it("is stacked over time, running at the bottom, without a capacity", () => {
    const stack = partStack(answer);
    expect(stack.layers.map(({ value, mean }) => [value, mean])).toEqual([
      ["cpu", 0.5],
      ["run_queue", 0.25],
      ["lock", 1],
      ["timer", 2],
    ]);
    expect(stack.total).toEqual([4.75, 2.75]);
    expect(stack.capacity).toEqual([null, null]);
  });

  it("knows where nothing waits", () => {
    expect(hasWaits(threadTimeOf(answer))).toBe(true);
    const bare = { ...answer, parts: answer.parts.slice(0, 1), rows: [{ name: "shop", seconds: [1] }] };
    expect(hasWaits(threadTimeOf(bare))).toBe(false);
  });

  it("tells parts that it does not know by their own names", () => {
    expect(partKey({ type: "off_cpu", class: "gpu" })).toBe("gpu");
    expect(partOf("gpu").title).toBe("gpu");
    expect(inOrder(["gpu", "timer", "cpu", "lock"])).toEqual(["cpu", "lock", "timer", "gpu"]);
  });
});
