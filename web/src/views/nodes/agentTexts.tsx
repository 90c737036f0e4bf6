/** What is told of an agent: as cells of the table, and in full. */
import type { ComponentChildren } from "preact";
import { accountOf, refusalsOf } from "../../logic/agents/account.ts";
import { costOf, cpuShareOf } from "../../logic/agents/agents.ts";
import type { FleetKey, Member } from "../../logic/agents/fleet.ts";
import { limitsOf } from "../../logic/agents/limits.ts";
import { idleText, lossOf } from "../../logic/agents/loss.ts";
import { type TextTable, textTable } from "../../logic/picture/textTable.ts";
import { ago, brief, bytes, count, digits, duration, percent } from "../../logic/text/format.ts";
import type { Column } from "../ui/VirtualTable.tsx";

export const isAgent = ({ row }: Member) => row.has_account !== false;
/** By what the address names an agent. */
export const idOf = ({ row }: Member) => row.instance || row.node;
export const nodeName = ({ row }: Member) => row.node || "[not named]";

export const STATE_TEXTS = {
  live: ["live", "Its batches come"],
  sender: ["other sender", "A sender without an account: nothing is known but what came"],
  silent: [
    "not reporting",
    "Nothing comes from this node: is the machine up, does the agent run, does it reach the server?",
  ],
  replaced: ["replaced", "A newer agent runs on this node: nothing is missing"],
} as const;

/** A sender that is no agent lacks the fields. */
const ofAgent = (member: Member, text: () => string) => (isAgent(member) ? text() : "–");
const sharePerCpu = ({ row }: Member) => {
  const share = cpuShareOf(row);
  return share === null ? "–" : percent(share);
};
const perSample = ({ row }: Member) => {
  const cost = costOf(row);
  return cost === null ? "–" : `${digits(cost * 1e6)} µs`;
};

/** A figure that asks for a person, with what it means. */
function Trouble({ is, text, children }: { is: boolean; text: string; children: ComponentChildren }) {
  return is ? (
    <span class="warn-text" title={text}>
      {children}
      <span class="visually-hidden"> ({text})</span>
    </span>
  ) : (
    <span>{children}</span>
  );
}

/**
 * Head, hint and width in pixels, the least width of a table that has the column, and the cell. A table is never wider
 * than its box: each column comes where there is room for it beside all that came before.
 */
type Told = [key: FleetKey, title: string, hint: string, width: number, from: number, cell: (m: Member) => unknown];

const TOLD: readonly Told[] = [
  [
    "rate",
    "Rate",
    "Samples a second and CPU, at present",
    66,
    1020,
    (m) => ofAgent(m, () => `${count(m.row.frequency_hz)} Hz`),
  ],
  [
    ...(["cpus", "CPUs", "CPUs that it watches, and those that were off in the newest interval", 76, 480] as const),
    (m) => (
      <>
        {ofAgent(m, () => count(m.row.cpus))}
        {m.row.cpus_offline ? <span class="dim">, off: {m.row.cpus_offline}</span> : null}
      </>
    ),
  ],
  [
    ...(["idle", "Idle", "Share of the newest interval; no timer ticks: what no sample tells of", 70, 520] as const),
    (m) => <span title={idleText(m.row)}>{idleText(m.row) || "–"}</span>,
  ],
  [
    ...(["sampled", "Sampled", "Samples that the agent took since it started", 82, 880] as const),
    (m) => <span title={isAgent(m) ? accountOf(m.row) : ""}>{ofAgent(m, () => brief(m.row.samples_taken))}</span>,
  ],
  [
    ...(["stored", "Stored", "Samples of this agent in the store", 70, 810] as const),
    (m) => <span title={isAgent(m) ? accountOf(m.row) : ""}>{brief(m.row.samples_stored)}</span>,
  ],
  [
    ...(["lost", "Lost", "Samples that it took and could not deliver, by cause", 100, 0] as const),
    (m) => {
      const lost = lossOf(m.row.samples_lost);
      return (
        <Trouble is={m.lost > 0} text={lost.text}>
          {m.lost === 0 ? "0" : lost.brief}
        </Trouble>
      );
    },
  ],
  [
    "limits",
    "Agent limits hit",
    "Limits that it reached and how often: what it did less well, without losing a sample",
    ...([130, 650] as const),
    (m) => {
      const limits = limitsOf({ ...m.row.limits, ...m.row.label_limits });
      return (
        <Trouble is={m.limits > 0} text={limits.text}>
          {m.limits === 0 ? "–" : limits.brief}
        </Trouble>
      );
    },
  ],
  [
    ...([
      "refused",
      "Refused",
      "Requests or parts of them that this server did not take since its start, and why",
    ] as const),
    ...([72, 1280] as const),
    (m) => (
      <Trouble is={m.refused > 0} text={refusalsOf(m.row.refusals).text}>
        {m.refused === 0 ? "–" : brief(m.refused)}
      </Trouble>
    ),
  ],
  [
    "cost",
    "Agent CPU",
    "Of the machine's CPU time in the newest interval, with its BPF programs",
    ...([90, 740] as const),
    (m) => <span title={costText(m)}>{sharePerCpu(m)}</span>,
  ],
  ["sample", "per sample", "CPU time of process and BPF programs for each sample taken", 104, 1370, perSample],
  ["rss", "RSS", "Resident memory of the agent", 70, 950, (m) => ofAgent(m, () => bytes(m.row.rss_bytes))],
  ["maps", "BPF maps", "Kernel memory of its maps", 84, 1210, (m) => ofAgent(m, () => bytes(m.row.bpf_map_bytes))],
];

export const FIGURES: readonly Column<Member, FleetKey>[] = TOLD.map(([key, title, hint, width, from, cell]) => ({
  key,
  title,
  hint,
  number: true,
  width: { beside: `${width}px`, from },
  cell: (member) => cell(member) as ComponentChildren,
}));

function costText(member: Member): string {
  const { row } = member;
  const ofOne = cpuShareOf(row) === null ? "" : `${percent(row.agent_cores ?? 0)} of one CPU; `;
  return isAgent(member)
    ? `${ofOne}since its start: process ${duration(row.cpu_seconds)}, BPF ${duration(row.bpf_seconds)}`
    : "";
}

export function versionText(member: Member): string {
  const { row } = member;
  return isAgent(member) ? `${row.agent_version} · ${row.kernel} · ${row.arch}` : "no agent";
}

/** All of an agent, line by line: also what has no room in the table. */
export function detailsOf(member: Member, now: number): [string, string][] {
  const { row, state } = member;
  const offline = row.cpus_offline ? `, off: ${row.cpus_offline}` : "";
  const newest = `${ago(row.last_seen, now)}, ${new Date(row.last_seen).toISOString()}`;
  const refused = refusalsOf(row.refusals);
  if (!isAgent(member)) {
    return [
      ["State", STATE_TEXTS[state][1]],
      ["Last seen", newest],
      ["Stored", count(row.samples_stored)],
      ["Refused", refused.text || "nothing"],
    ];
  }
  return [
    ["State", `${STATE_TEXTS[state][0]}: ${STATE_TEXTS[state][1]}`],
    ["Last seen", newest],
    ["Instance", row.instance],
    ["Version", versionText(member)],
    ["Rate", `${count(row.frequency_hz)} Hz`],
    ["Closer looks", row.burst_limit_hz ? `up to ${count(row.burst_limit_hz)} Hz` : "its agent does not ask for any"],
    ["CPUs", `${count(row.cpus)}${offline}`],
    ["Idle", idleText(row) || "not known"],
    ["Samples", accountOf(row)],
    ["Lost", lossOf(row.samples_lost).text || "none"],
    ["Agent limits hit", limitsOf({ ...row.limits, ...row.label_limits }).text || "none"],
    ["Refused", refused.text || "nothing"],
    ["Agent CPU", `${sharePerCpu(member)}; ${costText(member)}; ${perSample(member)} a sample`],
    ["Memory", `RSS ${bytes(row.rss_bytes)}, BPF maps ${bytes(row.bpf_map_bytes)}`],
  ];
}

/** All that is known of these agents, a row each: what a file of this view holds. */
export function agentTable(title: string, members: readonly Member[], now: number): TextTable {
  return textTable(
    title,
    "Node",
    members.map((member) => ({ name: nodeName(member), told: detailsOf(member, now) })),
  );
}
