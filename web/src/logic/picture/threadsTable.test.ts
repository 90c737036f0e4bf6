import { describe, expect, it } from "vitest";
import { threadTimeOf } from "../waits/threadTime.ts";
import { threadsTable } from "./threadsTable.ts";

/** Two seconds: a thread that sleeps a quarter of its time, and one that always waits for a lock. */
const TOLD = threadTimeOf({
  ...{ from: 0, until: 2_000, by: "service", step_ms: 2_000, times: [0], covered: [1], count: 2, complete: true },
  exposure: { observed_seconds: 2, observed_cpu_seconds: 4, gaps: [], nodes: 1, idle_share: 0 },
  parts: [
    { type: "cpu", class: "", seconds: 1.5, rates: [0.75] },
    { type: "run_queue", class: "", seconds: 0, rates: [0] },
    { type: "off_cpu", class: "timer", seconds: 0.5, rates: [0.25] },
    { type: "off_cpu", class: "lock", seconds: 2, rates: [1] },
  ],
  rows: [
    { name: "shop", seconds: [1.5, 0, 0.5, 0] },
    { name: "", seconds: [0, 0, 0, 2] },
  ],
});

describe("threads' time in a file", () => {
  it("has a row for each value, with what its threads did in the page's order, and no column for what none did", () => {
    const { head, rows, title } = threadsTable("by service", "service", TOLD, TOLD.rows, (name) => name || "none");
    expect([title, head]).toEqual(["by service", ["service", "Threads", "Running", "Lock", "Timer"]]);
    expect(rows.map((row) => row.map((text) => text.replaceAll("\u202f", " ")))).toEqual([
      ["shop", "1.00", "0.750 (75.0 %)", "0 (0 %)", "0.250 (25.0 %)"],
      ["none", "1.00", "0 (0 %)", "1.00 (100 %)", "0 (0 %)"],
    ]);
  });
});
