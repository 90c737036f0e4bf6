/**
 * What became of each agent. In: the server's rows, one an agent's instance. Out: their states, the ones to look after
 * first.
 */
import type { NodeRow } from "../../api/types.ts";

/**
 * `silent`: nothing comes from it, and nothing else from its node. `replaced`: a newer instance runs on the node, such
 * as after a restart or an update, so that nothing is missing. `sender`: no agent but another sender, which nobody
 * expects to come again.
 */
export type AgentState = "live" | "silent" | "replaced" | "sender";

export interface Agent {
  row: NodeRow;
  state: AgentState;
}

/** One for all comparisons: making one takes longer than a thousand of them. */
let collator: Intl.Collator | null = null;

/** The order of names with numbers in them: `node-9` before `node-10`. */
export function compareNames(a = "", b = ""): number {
  collator ??= new Intl.Collator(undefined, { numeric: true });
  return collator.compare(a, b);
}

const ORDER: readonly AgentState[] = ["silent", "live", "replaced", "sender"];

function stateOf({ has_account, late, last_seen }: NodeRow, newest: number): AgentState {
  if (has_account === false) return "sender";
  if (!late) return "live";
  return last_seen < newest ? "replaced" : "silent";
}

export function agentsOf(rows: readonly NodeRow[]): Agent[] {
  const newest = new Map<string, number>();
  for (const { node, last_seen, has_account } of rows)
    if (has_account !== false) newest.set(node, Math.max(newest.get(node) ?? 0, last_seen));
  return rows
    .map((row): Agent => {
      return { row, state: stateOf(row, newest.get(row.node) ?? 0) };
    })
    .sort(
      (a, b) =>
        ORDER.indexOf(a.state) - ORDER.indexOf(b.state) ||
        compareNames(a.row.node, b.row.node) ||
        b.row.last_seen - a.row.last_seen,
    );
}

export function howMany(agents: readonly Agent[], state: AgentState): number {
  return agents.filter((agent) => agent.state === state).length;
}

/** The part of its machine's CPU time that an agent takes; null where that is not known yet. */
export function cpuShareOf({ agent_cores, cpus }: NodeRow): number | null {
  return agent_cores === null || agent_cores === undefined || cpus <= 0 ? null : agent_cores / cpus;
}

/** CPU seconds that the agent took for each sample, its BPF programs included; null before the first. */
export function costOf({ cpu_seconds, bpf_seconds, samples_taken }: NodeRow): number | null {
  return samples_taken > 0 ? (cpu_seconds + bpf_seconds) / samples_taken : null;
}
