/** Threads' time as a table for a file. In: rows as they are listed. Out: each with its level, and what threads did. */
import { cores, percent, shareOf } from "../text/format.ts";
import { partOf } from "../waits/parts.ts";
import type { ThreadTime, TimeRow } from "../waits/threadTime.ts";
import { type TextTable, textTable } from "./textTable.ts";

/**
 * Levels are threads, as a mean over the time that was observed; beside each stands its part of the row. What no thread
 * of the selection did has no column.
 */
export function threadsTable(
  title: string,
  by: string,
  { parts }: Pick<ThreadTime, "parts">,
  rows: readonly TimeRow[],
  nameOf: (value: string) => string,
): TextTable {
  const done = parts.flatMap(({ key, seconds }, i) => (seconds > 0 ? [{ title: partOf(key).title, i }] : []));
  const given = rows.map(({ name, level: all, levels }) => ({
    name: nameOf(name),
    told: [
      ["Threads", cores(all)] as const,
      ...done.map(({ title, i }) => {
        const level = levels[i] ?? 0;
        return [title, `${cores(level)} (${percent(shareOf(level, all))})`] as const;
      }),
    ],
  }));
  return textTable(title, by, given);
}
