import { describe, expect, it } from "vitest";
import type { TimelineAnswer } from "../../api/types.ts";
import {
  apart,
  stepFrom,
  waitAt,
  waitLanes,
  waitLine,
  waitOfText,
  waitSentence,
  waitText,
  waitWords,
} from "./lanes.ts";

/** all > main > read > __x64_sys_read > futex_do_wait, all > kthread > worker_thread. */
const answer: TimelineAnswer = {
  type: "cpu",
  types: ["cpu", "off_cpu", "run_queue"],
  query: "",
  from: 1_000_000,
  until: 1_010_000,
  complete: true,
  strings: ["", "all", "main", "read", "__x64_sys_read", "futex_do_wait", "kthread", "worker_thread", "[app]"],
  kinds: ["root", "native", "kernel"],
  languages: ["", "", ""],
  nodes: {
    parent: [-1, 0, 1, 2, 3, 0, 5, 0],
    name: [1, 2, 3, 4, 5, 6, 7, 8],
    module: [0, 0, 0, 0, 0, 0, 0, 0],
    kind: [0, 1, 1, 2, 2, 2, 2, 1],
    inlined: [0, 0, 0, 0, 0, 0, 0, 0],
    total: [0, 0, 0, 0, 0, 0, 0, 0],
    self: [0, 0, 0, 0, 0, 0, 0, 0],
  },
  samples: {
    offset_ns: [1e8, 3e8, 4e8, 5e8, 6e8],
    node: ["a", "a", "a", "a", "a"],
    cpu: [0, 0, 0, 1, 1],
    tid: [7, 7, 8, 9, 8],
    tgid: ["7", "7", "8", "", "8"],
    service: ["shop", "shop", "db", "[kernel]", "db"],
    thread: ["main", "main", "io", "kworker", "io"],
    mode: ["user", "kernel", "kernel", "kernel", "user"],
    value_ns: [5e7, 1.8e8, 9.9e7, 5e9, 2e7],
    stack: [2, 4, 1, 6, 7],
    sample_type: [0, 1, 2, 1, 1],
    wait_class: ["", "lock", "", "other", "timer"],
    wait_state: ["", "sleeping", "preempted", "idle", "sleeping"],
  },
};

describe("waits of a timeline", () => {
  it("stand apart from samples, and end at their time stamps", () => {
    const { own, waits } = apart(answer);
    expect(own.samples.offset_ns).toEqual([1e8]);
    expect(own.samples.stack).toEqual([2]);
    expect(waits.map(({ start, end }) => [start, end])).toEqual([
      [1.2e8, 3e8],
      [3.01e8, 4e8],
      // It began before the window.
      [0, 5e8],
      [5.8e8, 6e8],
    ]);
    expect(waits.map(({ isCut }) => isCut)).toEqual([false, false, false, false]);
    expect(waits.map(({ place }) => place)).toEqual(["read()", "main()", "worker_thread()", "[app]"]);
    const bare = { ...answer, types: undefined as never };
    expect(apart(bare)).toEqual({ own: bare, waits: [] });
  });

  it("don't last while their thread is known to do something else", () => {
    const samples = { ...answer.samples };
    samples.tid = [7, 7, 7, 7, 8];
    // It ran until 0.1 s; then a wait with both of its parts; then another one.
    samples.offset_ns = [1e8, 3e8, 3e8, 5e8, 6e8];
    samples.value_ns = [5e7, 9e8, 1e7, 1.5e8, 9e8];
    const { waits } = apart({ ...answer, samples });
    expect(waits.map(({ start, end, isCut }) => [start, end, isCut])).toEqual([
      [1e8, 3e8, true],
      [2.9e8, 3e8, false],
      [3.5e8, 5e8, false],
      [0, 6e8, false],
    ]);
    expect(waitWords(waits[0] as never)).toBe("in read(), waited for another thread at most 200\u202fms");
    expect(waitSentence(waits[0] as never, answer.from, 1e10)).toContain(", stands for 900\u202fms, until ");
    expect(waitLanes(waits)[0]).toMatchObject({ queued: 1e7, waited: 9e8 });
    // A sleep that is told twice, to a period.
    samples.value_ns = [5e7, 9e8, 1e7, 2.2e8, 9e8];
    expect(apart({ ...answer, samples }).waits[2]).toMatchObject({ start: 3e8, end: 5e8, isCut: false });
  });

  it("have the length that is told, and the wait for a CPU behind them", () => {
    const samples = { ...answer.samples };
    // One thread slept, and then waited for a CPU; another one stands for others; the last one began before the window.
    samples.tid = [7, 7, 7, 9, 8];
    samples.offset_ns = [1e8, 3e8, 3e8, 5e8, 6e8];
    samples.sample_type = [0, 1, 2, 1, 1];
    samples.wait_ns = [null, 4e7, 9.91e7, 1.2e5, 7e8];
    const { waits } = apart({ ...answer, samples });
    const near = (ns: number) => Math.round(ns / 1e3) * 1e3;
    expect(waits.map(({ start, end, length }) => [start, end, length].map(near))).toEqual([
      [1.609e8, 2.009e8, 4e7],
      [2.009e8, 3e8, 9.91e7],
      [4.9988e8, 5e8, 1.2e5],
      [0, 6e8, 7e8],
    ]);
    expect(waits.some(({ isCut }) => isCut)).toBe(false);
    // The server may name the wait for a CPU first: bars are drawn in the order of their ends.
    const turned = { ...samples, sample_type: [0, 2, 1, 1, 1], wait_ns: [null, 9.91e7, 4e7, 1.2e5, 7e8] };
    const ends = apart({ ...answer, samples: turned }).waits.map(({ part, end }) => [part, near(end)]);
    expect(ends.slice(0, 2)).toEqual([
      ["", 2.009e8],
      ["run_queue", 3e8],
    ]);
    // A sleep that is told twice while it lasts.
    const twice = { ...samples, tid: [7, 7, 8, 7, 9], sample_type: [0, 1, 2, 1, 1], wait_ns: [null, 2e9, 1, 2.2e9, 1] };
    const parts = apart({ ...answer, samples: twice }).waits.filter(({ tid }) => tid === "7");
    expect(parts.map(({ start, end, length }) => [start, end, near(length)])).toEqual([
      [1e8, 3e8, 2e9],
      [3e8, 5e8, 2.2e9],
    ]);
    expect(waitWords(waits[0] as never)).toBe("in read(), waited for another thread 40.0\u202fms");
    expect(waitWords(waits[1] as never)).toBe("in main(), waited for the CPU 99.1\u202fms");
    expect(waitWords(waits[3] as never)).toBe("in [app], waited for a time 700\u202fms");
    expect(waitSentence(waits[1] as never, answer.from, 1e10)).not.toContain("stands for");
    expect(waitSentence(waits[2] as never, answer.from, 1e10)).toContain(
      "0.120\u202fms, a kernel thread without work, stands for 5.00\u202fs, until",
    );
  });

  it("are told in words", () => {
    const [lock, queue] = apart(answer).waits;
    if (lock === undefined || queue === undefined) throw new Error("none");
    expect(waitWords(lock)).toBe("in read(), waited for another thread ≈ 180\u202fms");
    expect(waitWords(queue)).toBe("in main(), waited for the CPU ≈ 99.0\u202fms");
    expect(waitSentence(queue, answer.from, 1e10)).toMatch(
      /^io \(8\) in main\(\), waited .*, since another took its CPU, until .*\.400 on CPU 0$/,
    );
  });

  it("say who ended them, where that was sampled", () => {
    const wakers = { service: ["db"], process: ["db"], thread: ["writer"], tid: [5], stack: [1] };
    const woken = { ...answer, wakers, samples: { ...answer.samples, waker: [null, 0, null, null, null] } };
    const [lock, queue] = apart(woken).waits;
    if (lock === undefined || queue === undefined) throw new Error("none");
    expect(waitLine(lock)).toBe(`${waitWords(lock)}, woken by writer (db), in main()`);
    const sentence = waitSentence(lock, answer.from, 1e10);
    expect(sentence).toMatch(/, until .*\.300 on CPU 0, woken by writer \(db\), in main\(\)$/);
    expect(waitLine(queue)).toBe(waitWords(queue));
    expect(waitSentence(queue, answer.from, 1e10)).not.toContain("woken by");
  });

  it("are rows of threads, those first that waited for a CPU, and idle ones last", () => {
    const lanes = waitLanes(apart(answer).waits);
    expect(lanes.map(({ thread, waits }) => [thread, waits.length])).toEqual([
      ["io", 2],
      ["main", 1],
      ["kworker", 1],
    ]);
    expect(lanes[0]).toMatchObject({ queued: 9.9e7, waited: 2e7 });
    expect(waitAt(lanes[0] as never, 3.5e8, 0)).toBe(0);
    expect(waitAt(lanes[0] as never, 4.5e8, 0)).toBeNull();
    expect(waitAt(lanes[0] as never, 4.5e8, 6e7)).toBe(0);
  });

  it("are reached by keys and by the address", () => {
    const lanes = waitLanes(apart(answer).waits);
    expect(stepFrom(lanes, null, "ArrowRight")).toEqual({ lane: 0, at: 0 });
    expect(stepFrom(lanes, { lane: 0, at: 0 }, "ArrowRight")).toEqual({ lane: 0, at: 1 });
    expect(stepFrom(lanes, { lane: 0, at: 1 }, "ArrowRight")).toEqual({ lane: 0, at: 1 });
    expect(stepFrom(lanes, { lane: 0, at: 1 }, "ArrowDown")).toEqual({ lane: 1, at: 0 });
    expect(stepFrom(lanes, { lane: 1, at: 0 }, "ArrowUp")).toEqual({ lane: 0, at: 0 });
    expect(stepFrom(lanes, { lane: 0, at: 0 }, "End")).toEqual({ lane: 0, at: 1 });
    expect(stepFrom(lanes, { lane: 0, at: 0 }, "x")).toBeNull();
    expect(stepFrom([], null, "Home")).toBeNull();
    const text = waitText((lanes[0] as never as { waits: never[] }).waits[1] as never, answer.from);
    expect(text).toBe("1000600-8");
    expect(waitOfText(lanes, text, answer.from)).toEqual({ lane: 0, at: 1 });
    expect(waitOfText(lanes, "1000601-8", answer.from)).toBeNull();
    expect(waitOfText(lanes, "", answer.from)).toBeNull();
  });
});
