/** What lies below the windows of a comparison: what changed, in words, as a graph and as a table. */
import { changeWords, sideText } from "../logic/sides.ts";
import { diff, diffTop, pairParameters, selectorFaults, sides } from "../state/data.ts";
import { navigate, page } from "../state/index.ts";
import { Caveats, Changes, Verdict } from "./Changes.tsx";
import { Choice } from "./Choice.tsx";
import { DiffTable } from "./DiffTable.tsx";
import { Download } from "./Download.tsx";
import { findName, Graph } from "./Graph.tsx";
import { EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "./Notices.tsx";

/** The difference of two windows: what the page's state says they are. */
export function CompareProfile() {
  const answer = diff.data.value;
  const error = diff.error.value;
  const loading = diff.loading.value;
  const top = diffTop.data.value;
  const { only, width, query, baseQuery } = page.value;
  const { inTurn } = sides.value;
  if (answer === null) {
    if (error?.code === "bad_query") {
      const wrong = selectorFaults.value.base === null ? { query: "" } : { baseQuery: "" };
      return <UnreadableSelector error={error} onClear={() => navigate({ ...wrong, focus: "" })} />;
    }
    return <Missing error={error} loading={loading} kind="graph" />;
  }
  const { base, comparison } = answer;
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
      <Verdict answer={answer} />
      <Caveats answer={answer} />
      <Changes answer={answer} />
      <Graph
        measure={{
          title: `the difference of ${baseQuery === "" ? query || "all samples" : `${baseQuery} and ${query || "all samples"}`}`,
          secondsPerSample: answer.period_ns / 1e9,
          coresPerSample: 0,
          normalize: answer.normalize,
        }}
        loading={loading}
        download={<Download path="/diff" parameters={pairParameters()} by="function" />}
        tools={
          <>
            <Choice
              label="width"
              value={width}
              options={[
                ["both", "A + B"],
                ["before", sideText(sides.value, 0)],
                ["after", sideText(sides.value, 1)],
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
                ["new", inTurn ? "what is new" : changeWords(sides.value, "new")],
                ["gone", inTurn ? "what is gone" : changeWords(sides.value, "gone")],
              ]}
              onChoose={(chosen) => navigate({ only: chosen })}
            />
          </>
        }
        table={
          <DiffTable
            rows={top?.rows ?? []}
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
