/** Of what a closer look may be asked, and of what it is asked for now: what the place knows where it was opened. */
import { signal } from "@preact/signals";
import { nodes } from "../answers/agents.ts";

/** Labels that a closer look can be of. */
export const LOOKED_AT = [
  ...(["node", "cpu", "service", "process", "container", "pod", "namespace", "workload", "unit", "cgroup"] as const),
  ...(["version", "thread", "tgid", "tid"] as const),
];
export type LookedAt = Partial<Record<(typeof LOOKED_AT)[number], string>>;

export const lookedAt = signal<LookedAt>({});

/** Whether an agent asks for bursts: that of a node, or any. */
export function canLookCloser(node: string | null = null): boolean {
  const rows = nodes.data.value?.nodes ?? [];
  return rows.some((row) => (node === null || row.node === node) && (row.burst_limit_hz ?? 0) > 0);
}
