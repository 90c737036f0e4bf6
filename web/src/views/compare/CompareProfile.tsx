/** What lies below the windows of a comparison: what changed, in words, as a graph and as a table. */
import { changeWords, sideText } from "../../logic/compare/sideNames.ts";
import { measureOfPair } from "../../logic/graph/measure.ts";
import { judgedRows } from "../../logic/table/diffRows.ts";
import type { ParsedDiff } from "../../logic/tree/answer.ts";
import { navigate, page } from "../../state/address/page.ts";
import { diff, diffTop, isChosenHere, pairParameters, sideNames } from "../../state/answers/compare.ts";
import { selectorFaults } from "../../state/answers/selector.ts";
import { Download } from "../graph/Download.tsx";
import { findName, Graph } from "../graph/Graph.tsx";
import { Choice } from "../ui/Choice.tsx";
import { EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "../ui/Notices.tsx";
import { Caveats, Changes, Verdict } from "./Changes.tsx";
import { DiffTable } from "./DiffTable.tsx";

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
  const top = diffTop.data.value;
  const { only, width, query, baseQuery } = page.value;
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
      <Verdict answer={answer} />
      <Caveats answer={answer} />
      <Changes answer={answer} />
      <Graph
        measure={measureOfPair(title, answer.period_ns, answer.normalize)}
        loading={loading}
        download={<Download path="/diff" parameters={pairParameters()} by="function" />}
        tools={
          <>
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
        table={
          <DiffTable
            rows={judgedRows(top?.rows ?? [], hasBoth)}
            normalize={answer.normalize}
            only={only}
            confidence={answer.confidence}
            complete={top?.complete ?? true}
            onFind={findName}
          />
        }
      />
    </>
  );
}
