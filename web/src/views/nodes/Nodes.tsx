/** Every agent: when it was last heard of, what it took and lost, what it costs. Ten thousand are a table as any. */
import { useEffect, useMemo } from "preact/hooks";
import { agentsOf } from "../../logic/agents/agents.ts";
import {
  FLEET_KEYS,
  type FleetKey,
  fleetOf,
  groupsOf,
  type Member,
  narrowed,
  sortedFleet,
  totalsOf,
  type Wanted,
} from "../../logic/agents/fleet.ts";
import { formatSelector } from "../../logic/labels/selector.ts";
import type { Sort } from "../../logic/table/sort.ts";
import { ago, brief, count, digits, plural } from "../../logic/text/format.ts";
import { isOpen, navigate, type PageState, page } from "../../state/address/page.ts";
import { nodes } from "../../state/answers/agents.ts";
import { clockNow } from "../../state/live.ts";
import { canLookCloser } from "../../state/moments/closer.ts";
import { shownTable } from "../../state/moments/shownTable.ts";
import { lookCloser } from "../bar/Help.tsx";
import { InstallLine } from "../lazyViews.tsx";
import { Check } from "../ui/Check.tsx";
import { Choice } from "../ui/Choice.tsx";
import { FoldButton } from "../ui/Fold.tsx";
import { Go } from "../ui/Go.tsx";
import { EmptyNotice, ErrorNotice, Missing } from "../ui/Notices.tsx";
import { type Column, useSort, VirtualTable } from "../ui/VirtualTable.tsx";
import { agentTable, detailsOf, FIGURES, idOf, isAgent, nodeName, STATE_TEXTS, versionText } from "./agentTexts.tsx";
import { FleetTotals } from "./FleetTotals.tsx";

/** What needs a person stands first. */
const USUAL: Sort<FleetKey> = { key: "state", descending: false };

const TROUBLE_WORDS: Record<string, string> = {
  silent: "not reporting",
  lost: "lost samples",
  limits: "limits hit",
  refused: "refused",
  offline: "CPUs off",
};

export function Nodes() {
  const answer = nodes.data.value;
  const error = nodes.error.value;
  if (answer === null) return <Missing error={error} loading={nodes.loading.value} />;
  return (
    <section class="card nodes" aria-label="Nodes">
      {error !== null && <ErrorNotice error={error} />}
      <Fleet rows={answer.nodes} />
    </section>
  );
}

function Fleet({ rows }: { rows: Parameters<typeof agentsOf>[0] }) {
  const fleet = useMemo(() => fleetOf(agentsOf(rows)), [rows]);
  const { find, state, agentVersion: version, kernel, trouble, ended, agent } = page.value;
  const wanted: Wanted = useMemo(
    () => ({ find, state, version, kernel, trouble, ended }),
    [find, state, version, kernel, trouble, ended],
  );
  const [sort, onSort] = useSort<FleetKey>(FLEET_KEYS, USUAL);
  const listed = useMemo(() => narrowed(fleet, wanted), [fleet, wanted]);
  const sorted = useMemo(() => sortedFleet(listed, sort), [listed, sort]);
  const chosen = useMemo(
    () => (agent === "" ? -1 : sorted.findIndex((member) => idOf(member) === agent)),
    [sorted, agent],
  );
  const columns = useMemo(() => columnsOf(), []);
  const isNarrowed = find !== "" || state !== "" || version !== "" || kernel !== "" || trouble !== "";
  useEffect(() => {
    const of = sorted.length < fleet.length ? `${count(sorted.length)} of ` : "";
    shownTable.value = () => agentTable(`${of}${plural(fleet.length, "agent")}`, sorted, clockNow.peek());
    return () => {
      shownTable.value = null;
    };
  }, [sorted, fleet]);
  if (fleet.length === 0)
    return (
      <EmptyNotice title="No agent has reported yet.">
        <InstallLine />
      </EmptyNotice>
    );
  return (
    <>
      <Tools fleet={fleet} listed={listed} wanted={wanted} isNarrowed={isNarrowed} />
      {isOpen("totals") && <AllTotals fleet={fleet} wanted={wanted} />}
      <VirtualTable
        label="Table of agents"
        rows={sorted}
        keyOf={idOf}
        columns={columns}
        sort={sort}
        onSort={onSort}
        alone={true}
        shown={chosen}
        rowClass={(member) => member.state}
        onTake={(member) => navigate({ agent: idOf(member) }, "agent")}
        empty={isNarrowed ? "No agent is like this." : "All of them were replaced."}
      />
      {chosen >= 0 && <Details member={sorted[chosen] as Member} />}
    </>
  );
}

function columnsOf(): Column<Member, FleetKey>[] {
  return [
    {
      key: "node",
      title: "Node",
      hint: "Host name; one row an agent that ran there",
      number: false,
      width: { beside: "minmax(120px, 2fr)", phone: "minmax(100px, 2fr)" },
      cell: (member) => (
        // A row's keys are the table's: a link in each would be thousands of steps of Tab.
        <Go change={toNode(member)} tabIndex={-1} title={`Explore ${nodeName(member)}`}>
          <bdi>{nodeName(member)}</bdi>
        </Go>
      ),
    },
    {
      key: "seen",
      title: "Last seen",
      hint: "End of the newest batch",
      number: false,
      width: { beside: "minmax(164px, 1fr)", phone: "minmax(136px, 1fr)" },
      cell: ({ row, state }) => (
        <>
          {state !== "live" && state !== "sender" && (
            <span class="badge" title={STATE_TEXTS[state][1]}>
              {STATE_TEXTS[state][0]}
            </span>
          )}{" "}
          {ago(row.last_seen, clockNow.value)}
        </>
      ),
    },
    ...FIGURES,
    {
      key: "version",
      title: "Version",
      hint: "Agent, kernel, machine",
      number: false,
      width: { beside: "minmax(110px, 2fr)", from: 1130 },
      cell: (member) => <span title={versionText(member)}>{versionText(member)}</span>,
    },
  ];
}

function toNode({ row }: Member): Partial<PageState> {
  return {
    view: "explore",
    query: formatSelector([{ label: "node", operator: "=", value: row.node }]),
    focus: "",
  };
}

interface ToolsProps {
  fleet: readonly Member[];
  listed: readonly Member[];
  wanted: Wanted;
  isNarrowed: boolean;
}

function Tools({ fleet, listed, wanted, isNarrowed }: ToolsProps) {
  const { find, state, version, kernel, trouble, ended } = wanted;
  const options = (by: "state" | "version" | "kernel" | "trouble", nameOf: (value: string) => string = (v) => v) => {
    const groups = groupsOf(narrowed(fleet, wanted, by), by).map(
      ({ value, members }) => [value, `${nameOf(value)} (${count(members.length)})`] as const,
    );
    const missing = wanted[by] !== "" && wanted[by] !== "any" && !groups.some(([value]) => value === wanted[by]);
    return [...groups, ...(missing ? [[wanted[by], `${nameOf(wanted[by])} (0)`] as const] : [])];
  };
  const choices = useMemo(
    () => ({
      state: options("state", (value) => STATE_TEXTS[value as keyof typeof STATE_TEXTS][0]),
      version: options("version"),
      kernel: options("kernel"),
      trouble: options("trouble", (value) => TROUBLE_WORDS[value] ?? value),
    }),
    [fleet, wanted],
  );
  const totals = useMemo(() => totalsOf(listed), [listed]);
  const [silent, replaced] = ["silent", "replaced"].map((one) => fleet.filter((m) => m.state === one).length);
  const any = narrowed(fleet, { ...wanted, trouble: "any" }).length;
  return (
    <div class="toolbar">
      <h2>{plural(totals.nodes, "node")}</h2>
      <span class="dim" role="status" data-testid="fleet-sum">
        {isNarrowed ? `${count(listed.length)} of ${count(fleet.length)} listed, ` : ""}
        {plural(totals.agents, "agent")}
        {!isNarrowed && silent ? `, ${count(silent)} not reporting` : ""}, {plural(totals.cpus, "CPU")},{" "}
        {brief(totals.sampled)} sampled, {brief(totals.lost)} lost, agents take {digits(totals.cores)} cores
      </span>
      <input
        type="search"
        value={find}
        placeholder="Find a node, version, kernel"
        aria-label="Find agents"
        data-testid="find-agents"
        onInput={(event) => navigate({ find: event.currentTarget.value }, "search")}
      />
      <Choice
        label="State"
        id="agent-state"
        value={state as string}
        options={[["", "all"], ...choices.state]}
        onChoose={(one) => navigate({ state: one as PageState["state"] })}
      />
      <Choice
        label="Version"
        id="agent-version"
        value={version}
        options={[["", "all"], ...choices.version]}
        onChoose={(one) => navigate({ agentVersion: one })}
      />
      <Choice
        label="Kernel"
        id="agent-kernel"
        value={kernel}
        options={[["", "all"], ...choices.kernel]}
        onChoose={(one) => navigate({ kernel: one })}
      />
      <Choice
        label="Trouble"
        id="agent-trouble"
        value={trouble as string}
        options={[["", "all"], ["any", `any (${count(any)})`], ...choices.trouble]}
        onChoose={(one) => navigate({ trouble: one as PageState["trouble"] })}
      />
      {(replaced ?? 0) > 0 && state === "" && (
        <Check checked={ended} onToggle={() => navigate({ ended: !ended })} id="ended">
          and {plural(replaced ?? 0, "agent")} that ended, with a newer one in its place
        </Check>
      )}
      <FoldButton fold="totals" name="Sums by version, kernel and trouble">
        Totals {isOpen("totals") ? "▴" : "▾"}
      </FoldButton>
      {canLookCloser() && (
        <button type="button" class="button" aria-haspopup="dialog" onClick={() => lookCloser({})}>
          Closer looks …
        </button>
      )}
      {isNarrowed && (
        <button
          type="button"
          class="button"
          data-testid="all-agents"
          onClick={() => navigate({ find: "", state: "", agentVersion: "", kernel: "", trouble: "" })}
        >
          Show all
        </button>
      )}
    </div>
  );
}

function AllTotals({ fleet, wanted }: { fleet: readonly Member[]; wanted: Wanted }) {
  const members = useMemo(
    () => ({
      version: narrowed(fleet, wanted, "version"),
      kernel: narrowed(fleet, wanted, "kernel"),
      trouble: narrowed(fleet, wanted, "trouble"),
    }),
    [fleet, wanted],
  );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the box scrolls where the tables are long.
    <div class="fleet-totals" tabIndex={0} role="region" aria-label="Totals">
      <FleetTotals
        by="version"
        title="By version"
        members={members.version}
        chosen={wanted.version}
        nameOf={(value) => value}
        onChoose={(agentVersion) => navigate({ agentVersion })}
      />
      <FleetTotals
        by="kernel"
        title="By kernel"
        members={members.kernel}
        chosen={wanted.kernel}
        nameOf={(value) => value}
        onChoose={(kernel) => navigate({ kernel })}
      />
      <FleetTotals
        by="trouble"
        title="By trouble"
        members={members.trouble}
        chosen={wanted.trouble}
        nameOf={(value) => TROUBLE_WORDS[value] ?? value}
        onChoose={(trouble) => navigate({ trouble: trouble as PageState["trouble"] })}
      />
    </div>
  );
}

function Details({ member }: { member: Member }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the box scrolls on small screens.
    <section class="agent-details" aria-label="Selected agent" data-testid="agent-details" tabIndex={0}>
      <div class="agent-head">
        <b>
          <bdi>{nodeName(member)}</bdi>
        </b>
        <Go class="button" change={toNode(member)}>
          Explore
        </Go>
        {isAgent(member) && (
          <Go class="button" change={{ ...toNode(member), view: "timeline", zoom: "", box: "" }}>
            Timeline
          </Go>
        )}
        {(member.row.burst_limit_hz ?? 0) > 0 && (
          <button
            type="button"
            class="button"
            aria-haspopup="dialog"
            data-testid="look-closer"
            onClick={() => lookCloser({ node: member.row.node })}
          >
            Look closer …
          </button>
        )}
        <button type="button" class="button icon" aria-label="Close" onClick={() => navigate({ agent: "" })}>
          ✕
        </button>
      </div>
      <dl>
        {detailsOf(member, clockNow.value).map(([title, text]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd dir="auto">{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
