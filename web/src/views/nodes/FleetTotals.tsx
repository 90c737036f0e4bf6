/** Sums of the agents that are listed, by version, by kernel and by trouble; each group is a filter. */
import { useMemo } from "preact/hooks";
import { type GroupBy, groupsOf, type Member, totalsOf } from "../../logic/agents/fleet.ts";
import { brief, bytes, count, digits } from "../../logic/text/format.ts";
import { useKeptFocus } from "../ui/hooks.ts";

interface Props {
  by: GroupBy;
  title: string;
  /** Agents of all groups, whichever of them is chosen. */
  members: readonly Member[];
  chosen: string;
  nameOf: (value: string) => string;
  onChoose: (value: string) => void;
}

const MOST_GROUPS = 12;

export function FleetTotals({ by, title, members, chosen, nameOf, onChoose }: Props) {
  useKeptFocus();
  const groups = useMemo(
    () => groupsOf(members, by).map(({ value, members: of }) => ({ value, totals: totalsOf(of) })),
    [members, by],
  );
  const shown = groups.filter(({ value }, at) => at < MOST_GROUPS || value === chosen);
  return (
    <table data-testid={`totals-${by}`}>
      <caption>{title}</caption>
      <thead>
        <tr>
          <td />
          {["agents", "CPUs", "sampled", "lost", "agents' cores", "RSS"].map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {shown.map(({ value, totals }) => (
          <tr key={value}>
            <th scope="row">
              <button
                type="button"
                aria-pressed={value === chosen}
                title={value}
                onClick={() => onChoose(value === chosen ? "" : value)}
              >
                <bdi>{nameOf(value)}</bdi>
              </button>
            </th>
            <td>{count(totals.agents)}</td>
            <td>{count(totals.cpus)}</td>
            <td>{brief(totals.sampled)}</td>
            <td>{brief(totals.lost)}</td>
            <td>{digits(totals.cores)}</td>
            <td>{bytes(totals.rss)}</td>
          </tr>
        ))}
        {groups.length > shown.length && (
          <tr>
            <th scope="row" class="dim">
              {count(groups.length - shown.length)} more
            </th>
          </tr>
        )}
        {groups.length === 0 && (
          <tr>
            <th scope="row" class="dim">
              none
            </th>
          </tr>
        )}
      </tbody>
    </table>
  );
}
