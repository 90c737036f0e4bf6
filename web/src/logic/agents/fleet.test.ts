import { describe, expect, it } from "vitest";
import type { NodeRow } from "../../api/types.ts";
import { agentsOf } from "./agents.ts";
import { fleetOf, groupsOf, narrowed, sortedFleet, totalsOf, type Wanted } from "./fleet.ts";

const ALL: Wanted = { find: "", state: "", version: "", kernel: "", trouble: "", ended: false };

function row(node: string, more: Partial<NodeRow> = {}): NodeRow {
  return {
    node,
    instance: `i-${node}`,
    agent_version: "0.2.0",
    kernel: "6.8.0",
    arch: "x86_64",
    last_seen: 1000,
    frequency_hz: 20,
    cpus: 4,
    samples_taken: 100,
    samples_lost: {},
    limits: {},
    samples_stored: 90,
    cpu_seconds: 1,
    bpf_seconds: 0,
    agent_cores: 0.01,
    rss_bytes: 1000,
    bpf_map_bytes: 10,
    late: false,
    idle_share: 0.5,
    ...more,
  };
}

const fleet = fleetOf(
  agentsOf([
    row("web-10", { samples_lost: { ring_full: 7 }, idle_share: null }),
    row("web-9", { agent_version: "0.1.0", kernel: "5.15.0", limits: { tables_late: 2 }, cpus_offline: "3" }),
    row("db-1", { late: true, cpus: 8, refusals: [{ reason: "bad", count: 3, last: 0, message: "" }] }),
    row("web-9", { instance: "old", late: true, last_seen: 10, agent_version: "0.1.0", cpus: 4 }),
    row("otel", { has_account: false, instance: "", agent_version: "", kernel: "" }),
  ]),
);
const names = (members: readonly { row: NodeRow }[]) => members.map((one) => one.row.node);

describe("the list of agents", () => {
  it("is narrowed by words, state, version, kernel and trouble, all at once", () => {
    expect(names(narrowed(fleet, ALL))).toEqual(["db-1", "web-9", "web-10", "otel"]);
    expect(narrowed(fleet, { ...ALL, ended: true })).toHaveLength(5);
    expect(names(narrowed(fleet, { ...ALL, state: "replaced" }))).toEqual(["web-9"]);
    expect(names(narrowed(fleet, { ...ALL, find: "WEB 5.15" }))).toEqual(["web-9"]);
    expect(names(narrowed(fleet, { ...ALL, version: "0.1.0", trouble: "limits" }))).toEqual(["web-9"]);
    expect(names(narrowed(fleet, { ...ALL, trouble: "any" }))).toEqual(["db-1", "web-9", "web-10"]);
    expect(names(narrowed(fleet, { ...ALL, trouble: "offline" }))).toEqual(["web-9"]);
    expect(names(narrowed(fleet, { ...ALL, kernel: "6.8.0", trouble: "lost" }))).toEqual(["web-10"]);
    expect(narrowed(fleet, { ...ALL, version: "0.1.0", state: "live" }, "version")).toHaveLength(2);
  });

  it("is sorted by any column, numbers in names as numbers, unknown figures last either way", () => {
    const shown = narrowed(fleet, ALL);
    expect(names(sortedFleet(shown, { key: "node", descending: false }))).toEqual(["db-1", "otel", "web-9", "web-10"]);
    expect(names(sortedFleet(shown, { key: "idle", descending: false })).at(-1)).toBe("web-10");
    expect(names(sortedFleet(shown, { key: "idle", descending: true })).at(-1)).toBe("web-10");
    expect(names(sortedFleet(shown, { key: "lost", descending: true }))[0]).toBe("web-10");
    expect(names(sortedFleet(shown, { key: "cpus", descending: true }))[0]).toBe("db-1");
    expect(names(sortedFleet(shown, { key: "version", descending: true })).at(-1)).toBe("otel");
  });

  it("has sums: a node's CPUs once, the time of agents that run, no sender as an agent", () => {
    const totals = totalsOf(narrowed(fleet, { ...ALL, ended: true }));
    expect(totals).toEqual({
      ...{ agents: 4, nodes: 4, cpus: 16, sampled: 400, stored: 450, lost: 7, cores: 0.02, rss: 2000 },
    });
    const version = groupsOf(fleet, "version");
    expect(version.map(({ value, members }) => [value, members.length])).toEqual([
      ["0.2.0", 2],
      ["0.1.0", 2],
    ]);
    expect(groupsOf(fleet, "trouble").map(({ value }) => value)).toHaveLength(5);
  });
});
