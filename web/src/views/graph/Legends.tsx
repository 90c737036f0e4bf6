/** What a frame's colour tells, and which of the colourings is chosen. */
import { useMemo } from "preact/hooks";
import { diffPaint, kindSwatch, LEGEND, legendKinds } from "../../logic/colour.ts";
import { chosenRows, rowChoices } from "../../logic/labels/rows.ts";
import type { UnitChoice } from "../../logic/text/figure.ts";
import { timeHead } from "../../logic/text/unit.ts";
import { kindsOf } from "../../logic/tree/functions.ts";
import { navigate, page } from "../../state/address/page.ts";
import { labels } from "../../state/answers/server.ts";
import { colourPair } from "../../state/screen/pair.ts";
import { theme } from "../../state/screen/theme.ts";
import { tree } from "../../state/screen/tree.ts";
import { counted, rateTitle, unitChoice } from "../../state/screen/units.ts";
import type { ColourBy } from "../flame/paint.ts";
import { Choice, Segments } from "../ui/Choice.tsx";
import { FoldButton } from "../ui/Fold.tsx";

export function ColourChoice() {
  const { colour } = page.value;
  const isDiff = tree.value.tree?.diff !== null;
  return (
    <>
      {!isDiff && <UnitSegments />}
      <Choice
        label="Colour"
        id="colour"
        value={isDiff || colour !== "module" ? colour : ""}
        options={[
          ["", isDiff ? "difference" : "module"],
          ["kind", "kind"],
          ...(isDiff ? [["module", "module"] as const] : []),
        ]}
        onChoose={(chosen) => navigate({ colour: chosen })}
      />
    </>
  );
}

/** Labels whose values stand as rows above the stacks. A frame's way from the root is another one then. */
export function RowsChoice() {
  const { value } = page;
  // What ran before has no rows: the server counts it by stacks alone.
  if (value.view === "timeline") return null;
  return (
    <Choice
      label="Rows"
      id="rows"
      title="Values of labels as rows above the stacks: whose they are"
      value={chosenRows(value)}
      options={rowChoices(value, labels.data.value?.labels ?? [])}
      onChoose={(group) => navigate({ group, open: "" })}
    />
  );
}

export function unitWords(): readonly (readonly [UnitChoice, string, string])[] {
  const [rate, time] = [rateTitle(), timeHead(counted.value)];
  return [
    ["cores", counted.value.isTime ? rate : "cores", `${time} for each second of the window`],
    ["time", time, `${time} in the window`],
    ["samples", "samples", "Samples as they were taken"],
    ["share", "%", `The part of all samples in the window; ${rate} stand beside it`],
  ];
}

/** Of one window. */
function UnitSegments() {
  return (
    <Segments
      name="Unit of numbers"
      value={unitChoice.value}
      options={unitWords()}
      onChoose={(unit) => navigate({ unit })}
    />
  );
}

/** What colours tell now. */
export function shownColours(): ColourBy {
  return page.value.colour || (tree.value.tree?.diff ? "difference" : "module");
}

/** The colours in little; what each means unfolds below. */
export function LegendButton() {
  const shade = theme.value;
  const by = shownColours();
  const shown = tree.value.tree;
  const kinds = useMemo(() => (shown === null || by !== "kind" ? [] : legendKinds(kindsOf(shown))), [shown, by]);
  const fills =
    by === "difference"
      ? LEGEND.map(([change, strength]) => diffPaint(change, strength, shade, colourPair.value).fill)
      : kinds.slice(0, LEGEND.length).map((kind) => kindSwatch(kind, shade));
  return (
    <FoldButton fold="key" name="What the colours mean">
      {by === "module" ? "Key" : fills.map((fill, i) => <i key={i} class="swatch" style={{ background: fill }} />)}
    </FoldButton>
  );
}
