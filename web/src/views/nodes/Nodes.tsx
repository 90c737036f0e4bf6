/** Every agent: when it was last heard of, what it took and lost, what it costs. */
import { accountOf, refusalsOf } from "../../logic/agents/account.ts";
import { type Agent, agentsOf, costOf, cpuShareOf, howMany } from "../../logic/agents/agents.ts";
import { limitsOf } from "../../logic/agents/limits.ts";
import { idleText, lossOf } from "../../logic/agents/loss.ts";
import { formatSelector } from "../../logic/labels/selector.ts";
import { ago, brief, bytes, count, digits, duration, percent, plural } from "../../logic/text/format.ts";
import { navigate, page } from "../../state/address/page.ts";
import { nodes } from "../../state/answers/agents.ts";
import { clockNow } from "../../state/live.ts";
import { InstallLine } from "../lazyViews.tsx";
import { Check } from "../ui/Check.tsx";
import { Go } from "../ui/Go.tsx";
import { EmptyNotice, ErrorNotice, Missing } from "../ui/Notices.tsx";

const HEAD: readonly [string, string, boolean][] = [
  ["Node", "Host name; one row an agent that ran there", false],
  ["Last seen", "End of the newest batch", false],
  ["Rate", "Samples a second and CPU, at present", true],
  ["CPUs", "CPUs that it watches, and those that were off in the newest interval", true],
  ["Idle", "Share of the newest interval; unseen: no tick came", true],
  ["Taken", "Samples that the agent took since it started", true],
  ["Stored", "Samples of this agent in the store", true],
  ["Lost", "Samples that it took and could not deliver, by cause", true],
  ["Limits", "Limits that it reached and how often: what it did less well, without losing a sample", true],
  ["Refused", "Requests or parts of them that this server did not take since its start, and why", true],
  ["Agent CPU", "Of the machine's CPU time in the newest interval, with its BPF programs", true],
  ["per sample", "CPU time of process and BPF programs for each sample taken", true],
  ["RSS", "Resident memory of the agent", true],
  ["BPF maps", "Kernel memory of its maps", true],
  ["Version", "Agent, kernel, machine", false],
];

export function Nodes() {
  const answer = nodes.data.value;
  const error = nodes.error.value;
  if (answer === null) return <Missing error={error} loading={nodes.loading.value} />;
  const agents = agentsOf(answer.nodes);
  const [silent, replaced] = [howMany(agents, "silent"), howMany(agents, "replaced")];
  const senders = howMany(agents, "sender");
  const { ended } = page.value;
  const rows = ended ? agents : agents.filter(({ state }) => state !== "replaced");
  return (
    <section class="card nodes" aria-label="Nodes">
      {error !== null && <ErrorNotice error={error} />}
      <div class="toolbar">
        <h2>{plural(new Set(agents.map(({ row }) => row.node)).size, "node")}</h2>
        <span class="dim">
          {plural(agents.length - replaced - senders, "agent")}
          {silent > 0 ? `, ${count(silent)} silent` : ""}
          {senders > 0 ? `, ${plural(senders, "other sender")}` : ""}
        </span>
        {replaced > 0 && (
          <Check checked={ended} onToggle={() => navigate({ ended: !ended })} id="ended">
            and {plural(replaced, "agent")} that ended, with a newer one in its place
          </Check>
        )}
      </div>
      {rows.length === 0 ? (
        <EmptyNotice title="No agent has reported yet.">
          <InstallLine />
        </EmptyNotice>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the box scrolls sideways on narrow screens.
        <div class="nodes-scroll" tabIndex={0} role="region" aria-label="Table of agents">
          <table class="grid">
            <thead>
              <tr>
                {HEAD.map(([title, hint, number]) => (
                  <th key={title} scope="col" title={hint} class={number ? "number" : ""}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((agent) => (
                <NodeLine key={agent.row.instance || agent.row.node} agent={agent} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

const BADGES = {
  live: null,
  sender: null,
  silent: ["silent", "Nothing comes from this node: is the machine up, does the agent run, does it reach the server?"],
  replaced: ["replaced", "A newer agent runs on this node: nothing is missing"],
} as const;

function NodeLine({ agent: { row, state } }: { agent: Agent }) {
  const badge = BADGES[state];
  const cost = costOf(row);
  const share = cpuShareOf(row);
  const ofOne = share === null ? "" : `${percent(row.agent_cores ?? 0)} of one CPU; `;
  const query = formatSelector([{ label: "node", operator: "=", value: row.node }]);
  const lost = lossOf(row.samples_lost);
  const limits = limitsOf({ ...row.limits, ...row.label_limits });
  const refused = refusalsOf(row.refusals);
  const isAgent = row.has_account !== false;
  const account = isAgent ? accountOf(row) : "A sender without an account: nothing is known but what came";
  return (
    <tr class={state}>
      <th scope="row">
        <Go change={{ view: "explore", query, focus: "" }} title={isAgent ? `Instance ${row.instance}` : account}>
          {row.node || "[not named]"}
        </Go>
      </th>
      <td title={new Date(row.last_seen).toISOString()}>
        {badge !== null && (
          <span class="badge" title={badge[1]}>
            {badge[0]}
          </span>
        )}{" "}
        {ago(row.last_seen, clockNow.value)}
      </td>
      <td class="number">{isAgent ? `${count(row.frequency_hz)} Hz` : "–"}</td>
      <td
        class="number"
        title={row.cpus_offline ? `CPU ${row.cpus_offline} off, or not sampled, in the newest interval` : undefined}
      >
        {isAgent ? count(row.cpus) : "–"}
        {row.cpus_offline ? <span class="dim">, off: {row.cpus_offline}</span> : null}
      </td>
      <td class="number">{idleText(row) || "–"}</td>
      <td class="number" title={account}>
        {isAgent ? brief(row.samples_taken) : "–"}
      </td>
      <td class="number" title={account}>
        {brief(row.samples_stored)}
      </td>
      <td class={`number${lost.samples > 0 ? " warn-text" : ""}`} title={lost.text}>
        {lost.samples === 0 ? "0" : lost.brief}
      </td>
      <td class={`number${limits.reached > 0 ? " warn-text" : ""}`} title={limits.text}>
        {limits.reached === 0 ? "–" : limits.brief}
        {limits.reached > 0 && <span class="visually-hidden"> ({limits.text})</span>}
      </td>
      <td class={`number${refused.count > 0 ? " warn-text" : ""}`} title={refused.text}>
        {refused.count === 0 ? "–" : brief(refused.count)}
        {refused.count > 0 && <span class="visually-hidden"> ({refused.text})</span>}
      </td>
      <td
        class="number"
        title={
          isAgent
            ? `${ofOne}since its start: process ${duration(row.cpu_seconds)}, BPF ${duration(row.bpf_seconds)}`
            : account
        }
      >
        {share === null ? "–" : percent(share)}
      </td>
      <td class="number">{cost === null ? "–" : `${digits(cost * 1e6)} µs`}</td>
      <td class="number">{isAgent ? bytes(row.rss_bytes) : "–"}</td>
      <td class="number">{isAgent ? bytes(row.bpf_map_bytes) : "–"}</td>
      <td class="dim">{isAgent ? `${row.agent_version} · ${row.kernel} · ${row.arch}` : "no agent"}</td>
    </tr>
  );
}
