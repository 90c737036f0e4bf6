/** What the word about the data, in the line above, is made of, of one window's samples. Never asks for them. */
import { unitOf } from "../../logic/text/unit.ts";
import type { WindowSums } from "../../state/answers/explore.ts";
import type { Resource } from "../../state/question/resource.ts";
import { Quality } from "./Quality.tsx";

/** Nothing where no sums are asked for, or there are no samples. */
export function WindowQuality({ sums }: { sums: Resource<WindowSums> | null }) {
  const answer = sums?.data.value ?? null;
  if (sums === null || answer === null || answer.samples === 0) return null;
  return (
    <div class="card data" aria-busy={sums.stale.value}>
      <Quality name="" answer={answer} unit={unitOf(answer)} />
    </div>
  );
}
