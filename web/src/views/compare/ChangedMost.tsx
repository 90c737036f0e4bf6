/** What of one window changed most since an earlier one of the same length, judged as a comparison is. */
import type { ComponentChildren } from "preact";
import { sideNamesOf } from "../../logic/compare/sideNames.ts";
import { rangeText } from "../../logic/time/time.ts";
import { pairTexts } from "../../logic/time/windows.ts";
import { rowKey } from "../../logic/tree/frameKey.ts";
import { largestOf } from "../../logic/tree/functions.ts";
import { navigate, page } from "../../state/address/page.ts";
import { changedMost, earlierWindow } from "../../state/answers/judged.ts";
import { present, range } from "../../state/question/question.ts";
import { select } from "../../state/screen/selection.ts";
import { tree } from "../../state/screen/tree.ts";
import { actionOf, actOnValue } from "../chart/valueActions.ts";
import { findName } from "../graph/Graph.tsx";
import { Segments } from "../ui/Choice.tsx";
import { EmptyNotice, Missing } from "../ui/Notices.tsx";
import { JudgedTable } from "./JudgedTable.tsx";

const AGAINST = [
  ["", "Window before", "The equal window just before this one"],
  ["day", "Yesterday", "The same time yesterday"],
  ["week", "Last week", "The same time a week ago"],
] as const;

/** `choice`: by what the rows are. */
export function ChangedMost({ choice }: { choice: ComponentChildren }) {
  const { against, only, query, rank } = page.value;
  const { data, error, loading } = changedMost;
  const answer = data.value;
  const base = earlierWindow.value;
  const window = range.value;
  return (
    <>
      <div class="toolbar">
        <Segments
          name="Against"
          value={against}
          options={AGAINST}
          onChoose={(chosen) => navigate({ against: chosen })}
        />
        <button
          type="button"
          class="button"
          title="The same as flamegraphs, with its causes"
          onClick={() =>
            navigate({
              view: "compare",
              ...pairTexts({ base, comparison: window }),
              baseQuery: "",
              tab: "",
              focus: "",
              live: false,
            })
          }
        >
          Compare
        </button>
        <span class="dim">with {rangeText(base, present.value)}</span>
      </div>
      {answer === null || answer.by !== rank ? (
        <Missing error={error.value} loading={loading.value} />
      ) : (answer.base_samples ?? 0) === 0 ? (
        <EmptyNotice title="No samples there: there is nothing to compare with.">
          <p>{choice}</p>
        </EmptyNotice>
      ) : (
        <JudgedTable
          by={rank}
          answer={answer}
          rows={answer.rows}
          only={only}
          sides={sideNamesOf(query, query, true)}
          choice={choice}
          onTake={(row, event) => {
            if (rank !== "function") return actOnValue(rank, row.name, actionOf(event));
            const shown = tree.value.tree;
            findName(row.name);
            if (shown !== null) select(largestOf(shown, rowKey(row)), { tab: "changed" });
          }}
        />
      )}
    </>
  );
}
