import { describe, expect, it } from "vitest";
import type { NodeRow } from "../../api/types.ts";
import { agentsOf, costOf, cpuShareOf, howMany } from "./agents.ts";

function row(node: string, instance: string, last_seen: number, late: boolean): NodeRow {
  return {
    node,
    instance,
    agent_version: "1",
    kernel: "6.1",
    arch: "x86_64",
    last_seen,
    frequency_hz: 20,
    cpus: 2,
    samples_taken: 100,
    samples_lost: {},
    limits: {},
    samples_stored: 100,
    idle_share: null,
    cpu_seconds: 2,
    bpf_seconds: 1,
    agent_cores: 0.01,
    rss_bytes: 0,
    bpf_map_bytes: 0,
    late,
  };
}

describe("agents", () => {
  const agents = agentsOf([
    row("n10", "d", 100, false),
    row("n2", "c", 100, false),
    row("n2", "old", 40, true),
    row("gone", "e", 50, true),
    row("gone", "before", 20, true),
  ]);

  it("that a newer one of the same node replaced are not silent", () => {
    expect(agents.map(({ row, state }) => `${row.node} ${row.instance} ${state}`)).toEqual([
      "gone e silent",
      "n2 c live",
      "n10 d live",
      "gone before replaced",
      "n2 old replaced",
    ]);
    expect([howMany(agents, "live"), howMany(agents, "silent"), howMany(agents, "replaced")]).toEqual([2, 1, 2]);
  });

  it("are told apart from other senders, which are silent whenever they like and stand behind", () => {
    const sender = { ...row("a", "", 90, true), has_account: false };
    // Newer than the agent of the same node, which is not replaced by it.
    const beside = { ...row("gone", "", 99, false), has_account: false };
    const told = agentsOf([sender, beside, row("gone", "e", 50, true), row("n2", "c", 100, false)]);
    expect(told.map(({ row, state }) => `${row.node} ${state}`)).toEqual([
      "gone silent",
      "n2 live",
      "a sender",
      "gone sender",
    ]);
  });

  it("cost what they and their BPF programs take", () => {
    expect(costOf(row("a", "b", 0, false))).toBe(0.03);
    expect(costOf({ ...row("a", "b", 0, false), samples_taken: 0 })).toBeNull();
    expect(cpuShareOf(row("a", "b", 0, false))).toBe(0.005);
    expect(cpuShareOf({ ...row("a", "b", 0, false), agent_cores: null })).toBeNull();
  });
});
