/** What waits are for and how they began, with their time: each can be left out by a click, or be kept alone. */
import type { TopRow } from "../../api/types.ts";
import { duration } from "../../logic/text/format.ts";
import {
  CLASS,
  IDLE,
  isKept,
  keptAlone,
  onlyOf,
  STATE,
  toggled,
  type WaitLabel,
  withoutWaits,
} from "../../logic/waits/chips.ts";
import { inOrder, partOf, stateWords } from "../../logic/waits/parts.ts";
import { WOKE } from "../../logic/waits/wakers.ts";
import { navigate, page } from "../../state/address/page.ts";
import { theme } from "../../state/screen/theme.ts";
import { waitKinds } from "../../state/waits/chips.ts";
import { Choice } from "../ui/Choice.tsx";
import { WakersWay } from "./WakersWay.tsx";

const LEAST = [
  ["", "any length"],
  ["1", "1 ms or more"],
  ["10", "10 ms or more"],
  ["50", "50 ms or more"],
  ["100", "100 ms or more"],
  ["1000", "1 s or more"],
] as const;

/** Workers that wait for work wait long. */
const MOST = [
  ["", "however long"],
  ["10", "10 ms or less"],
  ["100", "100 ms or less"],
  ["1000", "1 s or less"],
  ["10000", "10 s or less"],
  ["60000", "1 min or less"],
] as const;

/** The lengths that are offered, and the one that an address asks for. */
const offered = (lengths: readonly (readonly [string, string])[], ms: string, bound: string) =>
  lengths.some(([known]) => known === ms) ? [...lengths] : [...lengths, [ms, `${ms} ms or ${bound}`] as const];

/** The same is done to side A where that has a selector of its own. */
function narrow(change: (query: string) => string): void {
  const { query, baseQuery } = page.peek();
  navigate({ query: change(query), ...(baseQuery === "" ? {} : { baseQuery: change(baseQuery) }), focus: "", row: "" });
}

export function WaitChips() {
  const { view, query, least, most, type } = page.value;
  const isWoke = type === WOKE && view !== "threads";
  // Kinds that are known are those of the waits that were looked at before.
  const facets = isWoke ? {} : (waitKinds.data.value ?? {});
  const rowsOf = (label: WaitLabel) => (facets[label]?.top?.rows ?? []).filter(({ name }) => name !== "");
  const [classes, states] = [rowsOf(CLASS), rowsOf(STATE)];
  const seconds = new Map(classes.map((row) => [row.name, row]));
  const ordered = inOrder([...seconds.keys()]).flatMap((name) => seconds.get(name) ?? []);
  const idle = states.find(({ name }) => name === IDLE);
  if (withoutWaits(query) === null) return null;
  // Lengths that leave nothing are taken back here.
  const isBounded = least !== "" || most !== "";
  if (!isWoke && !isBounded && classes.length + states.length === 0) return null;
  return (
    <section class="wait-chips" aria-label={isWoke ? "Who ended waits" : "Which waits count"} data-testid="wait-chips">
      <ul>
        {ordered.map((row) => (
          <Chip key={row.name} label={CLASS} row={row} rows={classes} title={partOf(row.name).title}>
            <i class="swatch" style={{ background: partOf(row.name).colour[theme.value] }} />
          </Chip>
        ))}
        {view !== "threads" &&
          states
            .filter(({ name }) => name !== IDLE)
            .map((row) => <Chip key={row.name} label={STATE} row={row} rows={states} title={stateWords(row.name)} />)}
      </ul>
      {idle !== undefined && (
        <label class="inline" title="Kernel threads that wait for work, told apart by the kernel itself">
          <input
            type="checkbox"
            checked={isKept(query, STATE, IDLE)}
            data-testid="idle-waits"
            onChange={() =>
              narrow((text) =>
                toggled(
                  text,
                  STATE,
                  IDLE,
                  states.map(({ name }) => name),
                ),
              )
            }
          />
          kernel threads that have nothing to do <span class="dim">{timeOf(idle)}</span>
        </label>
      )}
      <Choice
        label="Waits of"
        title="How long a wait itself was. One that had not ended is as long as it had been by then"
        id="least"
        value={least}
        options={offered(LEAST, least, "more")}
        onChoose={(ms) => navigate({ least: ms, focus: "" })}
      />
      <Choice
        label="and"
        title="Leaves out long waits, such as those of workers that have nothing to do"
        id="most"
        value={most}
        options={offered(MOST, most, "less")}
        onChoose={(ms) => navigate({ most: ms, focus: "" })}
      />
      {view !== "threads" && <WakersWay />}
    </section>
  );
}

const timeOf = ({ cpu_seconds }: TopRow) => duration(cpu_seconds ?? 0);

interface ChipProps {
  label: WaitLabel;
  row: TopRow;
  rows: readonly TopRow[];
  title: string;
  children?: preact.ComponentChildren;
}

function Chip({ label, row, rows, title, children }: ChipProps) {
  const { query } = page.value;
  const { name } = row;
  const kept = isKept(query, label, name);
  const isAlone = keptAlone(query, label) === name;
  const known = rows.map((one) => one.name);
  return (
    <li class={kept ? "wait-chip" : "wait-chip left-out"}>
      <button
        type="button"
        aria-pressed={kept}
        title={kept ? `Leave out: ${title}` : `Count again: ${title}`}
        onClick={() => narrow((text) => toggled(text, label, name, known))}
      >
        {children}
        {title} <span class="dim">{timeOf(row)}</span>
      </button>
      <button
        type="button"
        class="wait-only"
        aria-pressed={isAlone}
        aria-label={`Only ${title}`}
        title={isAlone ? "Count all again" : `Count ${title} alone`}
        onClick={() => narrow((text) => onlyOf(text, label, name))}
      >
        only
      </button>
    </li>
  );
}
