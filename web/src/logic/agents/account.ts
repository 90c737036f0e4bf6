/** What became of a sender's samples. In: its counters, and what it was refused. Out: text for a person. */
import type { NodeRow, Refusal } from "../../api/types.ts";
import { count } from "../text/format.ts";

/** What a sender was refused: how often in all, and a line for each reason with what it was told last. */
export function refusalsOf(refusals: readonly Refusal[] | undefined): { count: number; text: string } {
  const list = refusals ?? [];
  return {
    count: list.reduce((sum, one) => sum + one.count, 0),
    text: list
      .map((one) => `${one.reason}: ${count(one.count)}, last ${new Date(one.last).toISOString()}: ${one.message}`)
      .join("\n"),
  };
}

/** The equation that must hold of an agent, and what is missing for it to hold. */
export function accountOf(row: Pick<NodeRow, "samples_taken" | "samples_stored" | "samples_lost">): string {
  const lost = Object.values(row.samples_lost ?? {}).reduce((sum, samples) => sum + samples, 0);
  const missing = row.samples_taken - row.samples_stored - lost;
  const sum = `${count(row.samples_taken)} taken = ${count(row.samples_stored)} stored + ${count(lost)} lost`;
  return missing === 0 ? sum : `${sum} + ${count(missing)} on their way, or older than the retention`;
}
