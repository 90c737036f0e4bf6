/** Whose time the selected frame is, or what is searched for: by service, pod, container, process, thread and node. */
import type { TopAnswer, TopRow } from "../../api/types.ts";
import { worthOf as worthOfSide } from "../../logic/compare/norm.ts";
import { bothText, sideText } from "../../logic/compare/sideNames.ts";
import { type SideOfValue, type SpentSides, spentSides } from "../../logic/compare/spentSides.ts";
import { patternName } from "../../logic/flame/search.ts";
import { measureOf } from "../../logic/graph/measure.ts";
import { figureText, type UnitChoice, type Worth } from "../../logic/text/figure.ts";
import { count, percent, plural, shareOf, signed } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { rateHead, rateShort } from "../../logic/text/unit.ts";
import { isRow, titleOf } from "../../logic/tree/rows.ts";
import { navigate } from "../../state/address/page.ts";
import { comparing, sideNames } from "../../state/answers/compare.ts";
import { select, selected } from "../../state/screen/selection.ts";
import {
  isSpentStale,
  MOST_SPENT,
  SPENT_LABELS,
  type SpentLabel,
  spent,
  spentBefore,
  spentSubject,
} from "../../state/screen/spent.ts";
import { tree } from "../../state/screen/tree.ts";
import { counted, unitChoice } from "../../state/screen/units.ts";
import { layerName } from "../chart/LayerList.tsx";
import { ValueDots, valueHandlers } from "../chart/ValueButtons.tsx";
import { VALUE_HINT } from "../chart/valueActions.ts";
import { useKeptFocus } from "../ui/hooks.ts";

const NAME_ROOM = 48;

export function SpentBy() {
  return (
    <div class="spent" data-testid="spent" aria-busy={isSpentStale.value}>
      <p class="spent-of" data-testid="spent-of">
        <Subject />
      </p>
      {comparing.value ? <BothSides /> : <OneWindow />}
    </div>
  );
}

/** Whose time is told, by what was asked for: figures and heading are always of the same. */
function Subject() {
  const [shown, node] = [tree.value.tree, selected.value];
  const subject = spentSubject.value;
  const row = shown !== null && node !== null && isRow(shown, node) ? titleOf(shown, node) : null;
  const inRow = row !== null && (
    <>
      {" "}
      within <b dir="auto">{fitName(row, NAME_ROOM)}</b>
    </>
  );
  if (subject.of === "function")
    return (
      <>
        All frames of <b dir="auto">{fitName(subject.name, NAME_ROOM)}</b>, wherever they stand
        {subject.isSearched && ", whatever the search finds"}{" "}
        <button type="button" class="button tiny" onClick={() => select(null)}>
          {subject.isSearched ? "What the search finds" : "All samples"}
        </button>
      </>
    );
  if (subject.of === "search")
    return (
      <>
        What the search finds: samples with <b dir="auto">{fitName(patternName(subject.text), NAME_ROOM)}</b>
        {inRow}{" "}
        <button type="button" class="button tiny" onClick={() => navigate({ match: "" })}>
          Clear the search
        </button>
      </>
    );
  if (row !== null)
    return (
      <>
        All samples of <b dir="auto">{fitName(row, NAME_ROOM)}</b>
      </>
    );
  return subject.isBroken
    ? "All samples that are selected: the search is no expression, and narrows nothing."
    : "All samples that are selected. Select a frame, or search for a function, to see whose time that is.";
}

function OneWindow() {
  const { data, error } = spent;
  const facets = data.value;
  if (facets === null) return <p class="dim">{error.value?.message ?? "…"}</p>;
  return (
    <>
      {SPENT_LABELS.map((label) => {
        const answer = facets[label]?.top;
        // Where nothing has the label, it tells nothing.
        const isKnown = answer?.rows.some(({ name }) => name !== "") ?? false;
        return answer !== undefined && isKnown && <Filled key={label} label={label} answer={answer} />;
      })}
    </>
  );
}

function BothSides() {
  const [before, after] = [spentBefore.data.value, spent.data.value];
  const error = spentBefore.error.value ?? spent.error.value;
  if (before === null || after === null) return <p class="dim">{error?.message ?? "…"}</p>;
  return (
    <>
      <p class="dim">Not judged: the tabs of the labels tell which values changed.</p>
      {SPENT_LABELS.map((label) => {
        const [was, is] = [before[label]?.top, after[label]?.top];
        if (was === undefined || is === undefined) return null;
        if ([...was.rows, ...is.rows].every(({ name }) => name === "")) return null;
        return <SideTable key={label} label={label} sides={spentSides(was, is, MOST_SPENT)} />;
      })}
    </>
  );
}

/** The unit of amounts: the share stands beside each anyway. */
function amountUnit(): UnitChoice {
  return unitChoice.value === "share" ? "cores" : unitChoice.value;
}

/** Values of a label with what each took on both sides. */
function SideTable({ label, sides: { rows, rest } }: { label: SpentLabel; sides: SpentSides }) {
  const unit = counted.value;
  const chosen = amountUnit();
  useKeptFocus();
  const cell = (side: SideOfValue | null) =>
    side === null ? (
      <td title="Less than the values that were asked for">–</td>
    ) : (
      <td>
        {figureText(side.samples, chosen, worthOfSide({ ...side, perValue: 1 }, unit))}{" "}
        <small class="dim">{percent(side.share)}</small>
      </td>
    );
  return (
    <section aria-label={`Spent by ${label}`}>
      <table class="spent-sides">
        <thead>
          <tr>
            <th scope="col">{label}</th>
            <th scope="col">{sideText(sideNames.value, 0)}</th>
            <th scope="col">{sideText(sideNames.value, 1)}</th>
            <th scope="col">change, {rateHead(unit)}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, before, after, delta }) => (
            <tr key={name}>
              <th scope="row">
                <button type="button" title={`${name}. ${VALUE_HINT}`} {...valueHandlers(label, name)}>
                  <bdi>{layerName(name, 0, label)}</bdi>
                </button>
                <ValueDots label={label} value={name} name={layerName(name, 0, label)} />
              </th>
              {cell(before)}
              {cell(after)}
              <td>{delta === null ? "–" : signed(rateShort(delta, unit), delta)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {Math.max(...rest) > 0.0005 && (
        <p class="dim">Other: {bothText(percent(rest[0]), percent(rest[1]), sideNames.value)}</p>
      )}
    </section>
  );
}

/** What a row's samples stand for: of each value's own rates of sampling. */
function worthOf({ total, cpu_seconds, cores, rate }: TopRow): Worth {
  return {
    ...measureOf("", { samples: total, cpu_seconds, cores: cores ?? rate ?? 0 }),
    samples: total,
    unit: counted.value,
  };
}

function Filled({ label, answer }: { label: SpentLabel; answer: TopAnswer<TopRow> }) {
  const chosen = amountUnit();
  useKeptFocus();
  const beside = chosen === "time" ? "cores" : "time";
  const rest = answer.samples - answer.rows.reduce((sum, { total }) => sum + total, 0);
  return (
    <section aria-label={`Spent by ${label}`}>
      <h2>{label}</h2>
      <ul>
        {answer.rows.map((row) => {
          const name = layerName(row.name, 0, label);
          const figure = (choice: UnitChoice) => figureText(row.total, choice, worthOf(row));
          const share = shareOf(row.total, answer.samples);
          return (
            <li key={row.name}>
              <button
                type="button"
                class="spent-row"
                title={`${row.name || name}: ${count(row.total)} of ${count(answer.samples)}. ${VALUE_HINT}`}
                {...valueHandlers(label, row.name)}
              >
                <i style={{ width: `${share * 100}%` }} />
                <bdi>{name}</bdi>
                <span>{figure(chosen)}</span>
                <span class="dim">{figure(beside)}</span>
                <b>{percent(share)}</b>
              </button>
              <ValueDots label={label} value={row.name} name={name} />
            </li>
          );
        })}
      </ul>
      {rest > 0 && (
        <p class="dim">
          Other: {percent(shareOf(rest, answer.samples))}{" "}
          <button type="button" class="button tiny" onClick={() => navigate({ rank: label, tab: "functions" })}>
            all of the window by {label}
          </button>
        </p>
      )}
      {!answer.complete && rest === 0 && <p class="dim">more than {plural(answer.rows.length, "value")}</p>}
    </section>
  );
}
