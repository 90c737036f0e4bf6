import { describe, expect, it } from "vitest";
import type { TimelineAnswer } from "../../api/types.ts";
import { wokenBy } from "./wokenBy.ts";

/** Each name stands below the one before, but where a stack begins. */
const STACKS: readonly (readonly [kind: number, name: string, module: string])[][] = [
  [
    [1, "main", "app"],
    [1, "unlock_all", "app"],
    [1, "pthread_mutex_unlock", "libc.so.6"],
    [2, "__x64_sys_futex", "[kernel]"],
    [2, "futex_wake", "[kernel]"],
  ],
  [
    [2, "asm_sysvec_apic_timer_interrupt", "[kernel]"],
    [2, "hrtimer_interrupt", "[kernel]"],
    [2, "hrtimer_wakeup", "[kernel]"],
    [2, "wake_up_process", "[kernel]"],
    [2, "try_to_wake_up", "[kernel]"],
  ],
  [
    [2, "ret_from_fork_asm", "[kernel]"],
    [2, "kthread", "[kernel]"],
    [2, "rcu_gp_kthread", "[kernel]"],
    [2, "swake_up_one", "[kernel]"],
  ],
  [
    [1, "[app]", "app"],
    [2, "__x64_sys_write", "[kernel]"],
  ],
  [[1, "start_thread", "libc.so.6"]],
];

function answer(): TimelineAnswer {
  const strings = ["", "all"];
  const text = (of: string) => {
    if (!strings.includes(of)) strings.push(of);
    return strings.indexOf(of);
  };
  const nodes = { parent: [-1], name: [1], module: [0], kind: [0], inlined: [0], total: [0], self: [0] };
  const leaves = STACKS.map((stack) => {
    let parent = 0;
    for (const [kind, name, module] of stack) {
      nodes.parent.push(parent);
      nodes.name.push(text(name));
      nodes.module.push(text(module));
      nodes.kind.push(kind);
      for (const column of [nodes.inlined, nodes.total, nodes.self]) column.push(0);
      parent = nodes.parent.length - 1;
    }
    return parent;
  });
  return {
    type: "cpu",
    types: ["cpu", "off_cpu"],
    query: "",
    from: 0,
    until: 1000,
    complete: true,
    strings,
    kinds: ["root", "native", "kernel"],
    languages: ["", "", ""],
    nodes,
    wakers: {
      service: ["db", "[kernel]", "[kernel]", "shop", "shop"],
      process: ["db", "[interrupt]", "rcu_preempt", "app", ""],
      thread: ["writer", "[interrupt]", "rcu_preempt", "app", "worker"],
      tid: [9, 0, 17, 4, 5],
      stack: leaves,
    },
    samples: {
      offset_ns: [1, 2, 3, 4, 5, 6],
      node: [],
      cpu: [],
      tid: [],
      tgid: [],
      service: [],
      thread: [],
      mode: [],
      value_ns: [],
      stack: [],
      waker: [0, null, 1, 2, 3, 4],
    },
  };
}

describe("who ended a wait", () => {
  it("is named with its process, and by the function in which it did", () => {
    const told = [0, 1, 2, 3, 4, 5].map(wokenBy(answer()));
    expect(told).toEqual([
      "writer (db), in unlock_all()",
      "",
      "an interrupt, in hrtimer_wakeup()",
      "rcu_preempt, in rcu_gp_kthread()",
      "app, in [app]",
      "worker, in start_thread()",
    ]);
  });

  it("is nobody where the server does not say", () => {
    const { wakers: _, ...bare } = answer();
    expect(wokenBy(bare)(0)).toBe("");
    const { waker: _none, ...samples } = answer().samples;
    expect(wokenBy({ ...answer(), samples })(0)).toBe("");
  });
});
