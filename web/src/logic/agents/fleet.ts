/**
 * The list of agents as a person narrows it: words, state, version, kernel and trouble. In: agents and what is wanted.
 * Out: the rows in their order, and sums of what a group of agents has. Ten thousand agents are usual.
 */
import { type Agent, type AgentState, compareNames, costOf, cpuShareOf } from "./agents.ts";

/** What may be wrong with an agent that runs. */
export const TROUBLES = ["silent", "lost", "limits", "refused", "offline"] as const;
export type Trouble = (typeof TROUBLES)[number];

export interface Wanted {
  /** Words that all stand in the node's name, the instance, the versions or the machine. */
  find: string;
  state: AgentState | "";
  version: string;
  kernel: string;
  /** `any` for one of them. */
  trouble: Trouble | "any" | "";
  /** Agents that were replaced are listed too. */
  ended: boolean;
}

/** An agent with what is looked at again and again, worked out once an answer. */
export interface Member extends Agent {
  text: string;
  lost: number;
  limits: number;
  refused: number;
  troubles: readonly Trouble[];
}

const sum = (counts: Record<string, number> | null | undefined) =>
  Object.values(counts ?? {}).reduce((all, one) => all + one, 0);

const reached = (counts: Record<string, number> | null | undefined) =>
  Object.values(counts ?? {}).filter((times) => times > 0).length;

export function fleetOf(agents: readonly Agent[]): Member[] {
  return agents.map(({ row, state }) => {
    const lost = sum(row.samples_lost);
    const limits = reached(row.limits) + reached(row.label_limits);
    const refused = (row.refusals ?? []).reduce((all, { count }) => all + count, 0);
    const has: Record<Trouble, boolean> = {
      silent: state === "silent",
      lost: lost > 0,
      limits: limits > 0,
      refused: refused > 0,
      offline: (row.cpus_offline ?? "") !== "",
    };
    const text = [row.node, row.instance, row.agent_version, row.kernel, row.arch].join("\n").toLowerCase();
    return { row, state, text, lost, limits, refused, troubles: TROUBLES.filter((one) => has[one]) };
  });
}

/** The same but for one filter, so that its choices can tell how many each would leave. */
export function narrowed(fleet: readonly Member[], wanted: Wanted, but: keyof Wanted | "" = ""): Member[] {
  const words = wanted.find.toLowerCase().split(/\s+/).filter(Boolean);
  const { state, version, kernel, trouble } = wanted;
  return fleet.filter(
    (one) =>
      (but === "state" || (state === "" ? wanted.ended || one.state !== "replaced" : one.state === state)) &&
      (but === "version" || version === "" || one.row.agent_version === version) &&
      (but === "kernel" || kernel === "" || one.row.kernel === kernel) &&
      (but === "trouble" ||
        trouble === "" ||
        (trouble === "any" ? one.troubles.length > 0 : one.troubles.includes(trouble))) &&
      (but === "find" || words.every((word) => one.text.includes(word))),
  );
}

/** What the table can be sorted by; `state` is the order of what needs a person first. */
export const FLEET_KEYS = [
  ...(["state", "node", "seen", "rate", "cpus", "idle", "sampled", "stored", "lost", "limits", "refused"] as const),
  ...(["cost", "sample", "rss", "maps", "version"] as const),
];
export type FleetKey = (typeof FLEET_KEYS)[number];

const NUMBERS: Record<Exclude<FleetKey, "state" | "node" | "version">, (member: Member) => number | null> = {
  seen: ({ row }) => row.last_seen,
  rate: ({ row }) => (row.has_account === false ? null : row.frequency_hz),
  cpus: ({ row }) => (row.has_account === false ? null : row.cpus),
  idle: ({ row }) => row.idle_share,
  sampled: ({ row }) => row.samples_taken,
  stored: ({ row }) => row.samples_stored,
  lost: ({ lost }) => lost,
  limits: ({ limits }) => limits,
  refused: ({ refused }) => refused,
  cost: ({ row }) => cpuShareOf(row),
  sample: ({ row }) => costOf(row),
  rss: ({ row }) => row.rss_bytes,
  maps: ({ row }) => row.bpf_map_bytes,
};

/** What nobody knows stands last, whichever way. */
export function sortedFleet(
  fleet: readonly Member[],
  { key, descending }: { key: FleetKey; descending: boolean },
): readonly Member[] {
  const sign = descending ? -1 : 1;
  const byName = (a: Member, b: Member) => compareNames(a.row.node, b.row.node);
  if (key === "state") return descending ? fleet.toReversed() : fleet;
  if (key === "node") return fleet.toSorted((a, b) => sign * byName(a, b));
  if (key === "version")
    return fleet.toSorted(
      (a, b) =>
        sign * (compareNames(a.row.agent_version, b.row.agent_version) || compareNames(a.row.kernel, b.row.kernel)),
    );
  const read = NUMBERS[key];
  const known = fleet.map((member) => ({ member, value: read(member) ?? null }));
  known.sort((a, b) => {
    if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
    return sign * (a.value - b.value);
  });
  return known.map(({ member }) => member);
}

/** What agents have together. */
export interface Totals {
  agents: number;
  nodes: number;
  cpus: number;
  sampled: number;
  stored: number;
  lost: number;
  /** CPUs' worth of time that the agents take. */
  cores: number;
  rss: number;
}

export function totalsOf(fleet: readonly Member[]): Totals {
  const totals: Totals = { agents: 0, nodes: 0, cpus: 0, sampled: 0, stored: 0, lost: 0, cores: 0, rss: 0 };
  const nodes = new Set<string>();
  for (const { row, state, lost } of fleet) {
    nodes.add(row.node);
    totals.stored += row.samples_stored;
    if (row.has_account === false) continue;
    totals.agents++;
    totals.sampled += row.samples_taken;
    totals.lost += lost;
    // Of a node whose agent was replaced, the newer one counts its CPUs; a silent one takes nothing now.
    if (state !== "replaced") totals.cpus += row.cpus;
    if (state === "live") totals.cores += row.agent_cores ?? 0;
    if (state === "live") totals.rss += row.rss_bytes;
  }
  totals.nodes = nodes.size;
  return totals;
}

export interface Group {
  /** What the filter takes. */
  value: string;
  members: readonly Member[];
}

const PARTS = {
  state: ({ state }: Member) => [state],
  version: ({ row }: Member) => (row.has_account === false ? [] : [row.agent_version]),
  kernel: ({ row }: Member) => (row.has_account === false ? [] : [row.kernel]),
  trouble: ({ troubles }: Member) => troubles,
} as const;
export type GroupBy = keyof typeof PARTS;

/** Groups by what agents have, the largest first; an agent stands in each group of its troubles. */
export function groupsOf(fleet: readonly Member[], by: GroupBy): Group[] {
  const groups = new Map<string, Member[]>();
  for (const member of fleet) {
    for (const value of PARTS[by](member)) {
      const known = groups.get(value);
      if (known === undefined) groups.set(value, [member]);
      else known.push(member);
    }
  }
  return [...groups]
    .map(([value, members]) => ({ value, members }))
    .sort((a, b) => b.members.length - a.members.length || compareNames(b.value, a.value));
}
