/** What each colour of the graph means, in words. */
import { useMemo } from "preact/hooks";
import {
  type Change,
  diffPaint,
  kindSwatch,
  kindWord,
  LEGEND,
  legendKinds,
  MARK,
  modulePaint,
  type Pair,
  rowPaint,
} from "../../logic/colour.ts";
import { changeWords } from "../../logic/compare/sideNames.ts";
import { modulesOf, rowLabels } from "../../logic/graph/key.ts";
import { kindsOf } from "../../logic/tree/functions.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { choosePair, colourPair } from "../../state/screen/pair.ts";
import { theme } from "../../state/screen/theme.ts";
import { tree, upright } from "../../state/screen/tree.ts";
import { amount } from "../../state/screen/units.ts";
import { Choice } from "./Choice.tsx";

export function Legend({ by }: { by: "difference" | "kind" | "module" }) {
  return (
    <>
      {by === "difference" ? <ChangeLegend /> : by === "kind" ? <KindLegend /> : <ModuleLegend />}
      <RowLegend by={by} />
      {by === "difference" && <PairChoice />}
    </>
  );
}

/** What rows of labels are, where there are any. */
function RowLegend({ by }: { by: "difference" | "kind" | "module" }) {
  const shown = tree.value.tree;
  const labels = useMemo(() => (shown === null ? [] : rowLabels(shown)), [shown]);
  if (labels.length === 0) return null;
  return (
    <ul class="legend" aria-label="Rows">
      <li>
        <i class="swatch" style={{ background: rowPaint(theme.value).fill }} />
        row: all samples of a {labels.join(", of its ")}
        {by === "difference" && "; in colour where it changed"}
      </li>
    </ul>
  );
}

const MOST_MODULES = 8;

function ModuleLegend() {
  const shown = upright.value;
  const modules = useMemo(() => (shown === null ? [] : modulesOf(shown).slice(0, MOST_MODULES)), [shown]);
  return (
    <ul class="legend" aria-label="Colours">
      {modules.map(({ module, self }) => (
        <li key={module} title={`${amount(self)} in itself`}>
          <i class="swatch" style={{ background: modulePaint("native", module, theme.value).fill }} />
          {module || "no module"}
        </li>
      ))}
    </ul>
  );
}

/** Of what is in the picture: languages by their names. */
function KindLegend() {
  const shown = tree.value.tree;
  const kinds = useMemo(() => (shown === null ? [] : legendKinds(kindsOf(shown))), [shown]);
  return (
    <ul class="legend" aria-label="Colours">
      {kinds.map((kind) => (
        <li key={kind}>
          <i class="swatch" style={{ background: kindSwatch(kind, theme.value) }} />
          {kindWord(kind)}
        </li>
      ))}
    </ul>
  );
}

function ChangeLegend() {
  // What a change is called in time needs no more words than the change itself.
  const word = (change: Change) => (sideNames.value.inTurn ? change : changeWords(sideNames.value, change));
  return (
    <ul class="legend" aria-label="Colours">
      <li class="ramp">
        <span>▼ {word("shrank")}</span>
        {LEGEND.map(([change, strength]) => (
          <i
            key={`${change}${strength}`}
            class="swatch"
            title={changeWords(sideNames.value, change)}
            style={{ background: diffPaint(change, strength, theme.value, colourPair.value).fill }}
          />
        ))}
        <span>{word("grew")} ▲</span>
      </li>
      <li title="Grey: the difference is within what chance explains.">grey: no significant change</li>
      <li>
        {MARK.new} {word("new")}
      </li>
      <li>
        {MARK.gone} {word("gone")}
      </li>
    </ul>
  );
}

const PAIRS: readonly (readonly [Pair, string])[] = [
  ["red-blue", "red, blue"],
  ["orange-blue", "orange, blue (colour-blind)"],
];

/** Kept in this browser: it is about who looks, and not about what is looked at. */
function PairChoice() {
  return (
    <Choice
      label="Colours"
      name="Colours of differences"
      id="pair"
      value={colourPair.value}
      options={PAIRS}
      onChoose={choosePair}
    />
  );
}
