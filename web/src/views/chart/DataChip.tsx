/** The quality of the data in a word; what it is made of unfolds below. */
import { type Grade, gradeOf } from "../../logic/agents/grade.ts";
import { FoldButton } from "../ui/Fold.tsx";

interface Props {
  faults: readonly { text: string; isGrave: boolean }[];
  /** They are of an earlier question. */
  isStale?: boolean;
}

const MARKS: Record<Grade, string> = { good: "✓", check: "!", poor: "!!" };

export function DataChip({ faults, isStale = false }: Props) {
  const grade = gradeOf(faults);
  const why = faults.map(({ text }) => text).join("; ");
  return (
    <FoldButton
      fold="data"
      name={why}
      title={why === "" ? "Nothing speaks against these figures; a click shows them" : why}
      class={`data-chip ${grade}${isStale ? " stale" : ""}`}
    >
      <span aria-hidden="true">{MARKS[grade]}</span> Data: <b>{grade}</b>
      {faults.length > 1 && <span> ({faults.length})</span>}
    </FoldButton>
  );
}
