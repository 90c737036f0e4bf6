/** What lies below the windows of a comparison: what changed, in words, as a graph and as a table. */

import { sumsOfSides } from "../../logic/compare/norm.ts";
import { changeWords, sideText } from "../../logic/compare/sideNames.ts";
import { coresOfSides, measureOfPair } from "../../logic/graph/measure.ts";
import { judgedRows } from "../../logic/table/diffRows.ts";
import type { ParsedDiff } from "../../logic/tree/answer.ts";
import { isSameFunction, rowKey } from "../../logic/tree/frameKey.ts";
import { largestOf } from "../../logic/tree/functions.ts";
import { frameName, kindName, moduleName } from "../../logic/tree/tree.ts";
import { isOpen, navigate, page } from "../../state/address/page.ts";
import { diff, diffTop, isChosenHere, pairParameters, sideNames } from "../../state/answers/compare.ts";
import { labelDiff, presentLabels } from "../../state/answers/judged.ts";
import { selectorFaults } from "../../state/answers/selector.ts";
import { select, selected } from "../../state/screen/selection.ts";
import { tree } from "../../state/screen/tree.ts";
import { actionOf, actOnValue } from "../chart/valueActions.ts";
import { Download } from "../graph/Download.tsx";
import { findName, Graph } from "../graph/Graph.tsx";
import { SpentBy } from "../lazyViews.tsx";
import { Choice, Segments } from "../ui/Choice.tsx";
import { PHONE, useMedia } from "../ui/hooks.ts";
import { EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "../ui/Notices.tsx";
import { Beside } from "./Beside.tsx";
import { Causes } from "./Causes.tsx";
import { DataCard, Verdict } from "./Changes.tsx";
import { JudgedTable } from "./JudgedTable.tsx";
import { PairUnit } from "./PairUnit.tsx";

/** One side has no samples: what can be done about it. The graph is then of the other one, without colours. */
function OneSided({ answer }: { answer: ParsedDiff }) {
  const [lacks, has, window] =
    answer.base.samples === 0 ? (["A", "B", answer.comparison] as const) : (["B", "A", answer.base] as const);
  const { query, baseQuery, view } = page.value;
  return (
    <EmptyNotice title={`${lacks} has no samples: nothing is compared.`}>
      <p>The graph and the table show {has} alone; nothing is marked as more, less, new or gone.</p>
      <p>
        {view === "compare" && !isChosenHere.value && (
          <button type="button" class="button" data-testid="choose-base" onClick={() => navigate(CHOSEN_HERE)}>
            Let the page choose A
          </button>
        )}{" "}
        <button
          type="button"
          class="button"
          onClick={() =>
            navigate({
              view: "explore",
              query: has === "A" && view === "compare" ? baseQuery || query : query,
              from: String(window.from),
              until: String(window.until),
              focus: "",
            })
          }
        >
          Look at {has} alone
        </button>
      </p>
    </EmptyNotice>
  );
}

/** Side A where it lies in covered time in which the selection ran, beside what the range has of it. */
const CHOSEN_HERE = { baseFrom: "", baseUntil: "", chartFrom: "", chartUntil: "", focus: "" };

/** The difference of two windows: what the page's state says they are. */
export function CompareProfile() {
  const answer = diff.data.value;
  const error = diff.error.value;
  const loading = diff.loading.value;
  const { only, width, graphs, query, baseQuery, view } = page.value;
  const isPhone = useMedia(PHONE);
  const selected = query || "all samples";
  const { inTurn } = sideNames.value;
  if (answer === null) {
    if (error?.code === "bad_query") {
      const wrong = selectorFaults.value.base === null ? { query: "" } : { baseQuery: "" };
      return <UnreadableSelector error={error} onClear={() => navigate({ ...wrong, focus: "" })} />;
    }
    return <Missing error={error} loading={loading} kind="graph" />;
  }
  const { base, comparison } = answer;
  const title = `the difference of ${baseQuery === "" ? selected : `${baseQuery} and ${selected}`}`;
  const hasBoth = base.samples > 0 && comparison.samples > 0;
  if (base.samples === 0 && comparison.samples === 0) {
    if (error !== null) return <ErrorNotice error={error} />;
    if (diff.stale.value) return <Missing error={null} loading={true} kind="graph" />;
    return (
      <EmptyNotice title="Neither window has samples.">
        <p>Drag the windows to where the chart shows something, or change the selector.</p>
      </EmptyNotice>
    );
  }
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      {!hasBoth && <OneSided answer={answer} />}
      {view !== "compare" && (
        <section class="card sides-card" aria-label="Both sides">
          <Verdict answer={answer} />
        </section>
      )}
      {isOpen("data") && <DataCard answer={answer} />}
      <Graph
        measure={measureOfPair(title, answer.period_ns, answer.normalize, coresOfSides(answer), sumsOfSides(answer))}
        loading={loading}
        download={<Download path="/diff" parameters={pairParameters()} by="function" />}
        picture={graphs === "beside" ? Beside : undefined}
        tools={
          <>
            {isPhone && <PairUnit />}
            <Segments
              name="Graphs"
              value={graphs}
              options={[
                ["union", "Union", "One graph of both sides, with all frames of either"],
                ["beside", "A | B", "A graph of each side, beside each other, with one zoom"],
              ]}
              onChoose={(chosen) => navigate({ graphs: chosen })}
            />
            {graphs === "union" && (
              <Choice
                label="width"
                value={width}
                options={[
                  ["both", "A + B"],
                  ["before", sideText(sideNames.value, 0)],
                  ["after", sideText(sideNames.value, 1)],
                ]}
                onChoose={(chosen) => navigate({ width: chosen })}
              />
            )}
            <Choice
              label="only"
              title="Of the sentences and the table; the graph keeps all frames"
              id="only"
              value={only}
              options={[
                ["", "everything"],
                ["significant", "what differs"],
                ["new", inTurn ? "what is new" : changeWords(sideNames.value, "new")],
                ["gone", inTurn ? "what is gone" : changeWords(sideNames.value, "gone")],
              ]}
              onChoose={(chosen) => navigate({ only: chosen })}
            />
          </>
        }
        tabs={[
          {
            id: "causes",
            title: "Causes",
            hint: "Which functions explain what differs",
            content: () => <Causes answer={answer} />,
          },
          {
            id: "functions",
            title: "Functions",
            content: () => <FunctionsTab hasBoth={hasBoth} />,
            isStale: () => diffTop.stale.value,
          },
          ...presentLabels.value.map((label) => ({
            id: label,
            title: label.charAt(0).toUpperCase() + label.slice(1),
            hint: `Which ${label} differs, with the time of each on both sides`,
            content: () => <LabelTab label={label} hasBoth={hasBoth} />,
            // The answer of another label is not shown at all.
            isStale: () => labelDiff.stale.value && labelDiff.data.value?.by === label,
          })),
          {
            id: "spent",
            title: "Spent by",
            hint: "Whose time a frame is, on both sides",
            content: () => <SpentBy />,
            isStale: () => false,
          },
        ]}
      />
    </>
  );
}

function FunctionsTab({ hasBoth }: { hasBoth: boolean }) {
  const top = diffTop.data.value;
  const drawn = tree.value.tree;
  const chosen = selected.value;
  if (top === null) return <Missing error={diffTop.error.value} loading={diffTop.loading.value} />;
  const key =
    drawn === null || chosen === null
      ? null
      : { name: frameName(drawn, chosen), module: moduleName(drawn, chosen), kind: kindName(drawn, chosen) };
  return (
    <JudgedTable
      by="function"
      answer={top}
      rows={judgedRows(top.rows, hasBoth)}
      only={page.value.only}
      sides={sideNames.value}
      isChosen={(row) => key !== null && isSameFunction(rowKey(row), key)}
      onTake={(row) => {
        findName(row.name);
        if (drawn !== null) select(largestOf(drawn, rowKey(row)), { tab: "functions" });
      }}
    />
  );
}

/** The values of a label, each judged on both sides: whose doing it is. */
function LabelTab({ label, hasBoth }: { label: string; hasBoth: boolean }) {
  const { data, error, loading } = labelDiff;
  const answer = data.value;
  if (answer === null || answer.by !== label) return <Missing error={error.value} loading={loading.value} />;
  return (
    <JudgedTable
      by={label}
      answer={answer}
      rows={judgedRows(answer.rows, hasBoth)}
      only={page.value.only}
      sides={sideNames.value}
      onTake={(row, event) => actOnValue(label, row.name, actionOf(event))}
    />
  );
}
