/** What a frame's colour tells, and which of the colourings is chosen. */
import { useMemo } from "preact/hooks";
import { type Change, diffPaint, KINDS, kindSwatch, MARK, modulePaint } from "../../logic/colour.ts";
import { changeWords } from "../../logic/compare/sideNames.ts";
import { modulesOf } from "../../logic/tree/functions.ts";
import { navigate, page } from "../../state/address/page.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { theme } from "../../state/screen/theme.ts";
import { tree, upright } from "../../state/screen/tree.ts";
import { amount } from "../../state/screen/units.ts";
import { Choice } from "../ui/Choice.tsx";

export function ColourChoice() {
  const { colour } = page.value;
  const isDiff = tree.value.tree?.diff !== null;
  return (
    <Choice
      label="colour"
      id="colour"
      value={colour}
      options={[
        ["", isDiff ? "difference" : "kind"],
        ...(isDiff ? [["kind", "kind"] as const] : []),
        ["module", "module"],
      ]}
      onChoose={(chosen) => navigate({ colour: chosen })}
    />
  );
}

const LEGEND_MODULES = 8;

export function ModuleLegend() {
  const shown = upright.value;
  const modules = useMemo(() => (shown === null ? [] : modulesOf(shown).slice(0, LEGEND_MODULES)), [shown]);
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

export function KindLegend() {
  return (
    <ul class="legend" aria-label="Colours">
      {KINDS.map((kind) => (
        <li key={kind}>
          <i class="swatch" style={{ background: kindSwatch(kind, theme.value) }} />
          {kind === "jit" ? "JIT" : kind}
        </li>
      ))}
    </ul>
  );
}

const LEGEND: readonly [Change, number][] = [
  ["shrank", 1],
  ["shrank", 0.3],
  ["same", 0],
  ["grew", 0.3],
  ["grew", 1],
];

export function ChangeLegend() {
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
            style={{ background: diffPaint(change, strength, theme.value).fill }}
          />
        ))}
        <span>{word("grew")} ▲</span>
      </li>
      <li title="Grey: the difference is within what chance explains.">grey: not shown to differ</li>
      <li>
        {MARK.new} {word("new")}
      </li>
      <li>
        {MARK.gone} {word("gone")}
      </li>
    </ul>
  );
}
