/**
 * What an agent accounts for beside its samples. In: limits by name, samples by period, a node's counters. Out: text
 * for a person.
 */
import type { NodeRow, Period, Refusal } from "../../api/types.ts";
import { brief, count, digits, plural } from "../text/format.ts";

/** What was done less well when a limit was reached; no sample is lost by it. */
const LIMIT_WORDS: Record<string, string> = {
  stacks_not_copied: "stacks cut, since too many waited for their unwind tables at once",
  tables_late: "stacks cut, since their unwind tables took too long",
  tables_without_room: "unwind tables that found no room: stacks through those files are cut",
  symbols_left_out: "files with more functions than are kept of one: the rest has no names",
  lines_left_out: "files whose line numbers would have taken too much memory: they have function names only",
  tables_evicted: "unwind tables given up for others that were needed more",
  rate_lowered: "times that the rate was lowered, to stay within --cpu-limit",
  process_events_lost: "starts and ends of processes not seen: a short process may lack its name or its stacks",
  mapping_events_lost: "new mappings of code not seen: a library that a short process loads late may lack names",
  mapping_events_refused: "CPUs whose new mappings the kernel does not tell: such libraries may lack names",
  mapping_looks_put_off: "looks at new code made later, since a program makes code all the time or very many load some",
  early_looks_skipped: "programs not looked at when they started, since many did: a short one may lack names",
  programs_forgotten: "programs replaced by an exec and forgotten for want of room: short ones may lack names",
  code_replaced: "addresses without a name: other code was loaded there between the sample and the look at it",
  kernel_code_forgotten: "BPF programs not kept in mind for want of room: they have no names",
  label_values: "values of a label beyond what one sender may have within an hour: shown as [other]",
  label_names: "attributes beyond what one sender may have within an hour: left out",
  labels_of_series: "attributes beyond what one series may have: left out",
  profile_types: "profiles left out: of a type beyond those that one sender may have within an hour",
  label_name_length: "attributes left out for the length of their names",
  label_value_length: "values of labels that were cut for their length",
  processes_forgotten: "processes forgotten for want of room: looked up anew when they run again",
};

export interface Limits {
  /** How many limits were reached. */
  reached: number;
  /** `tables_late 12`, and of more than two the most frequent with how many more there are; or empty. */
  brief: string;
  /** A line for each, with what it means. */
  text: string;
}

export function limitsOf(byName: Record<string, number> | undefined): Limits {
  const reached = Object.entries(byName ?? {}).filter(([, times]) => times > 0);
  const shown = reached.length > 2 ? reached.toSorted(([, a], [, b]) => b - a).slice(0, 1) : reached;
  const named = shown.map(([name, times]) => `${name} ${brief(times)}`).join(", ");
  return {
    reached: reached.length,
    // A column of the table of nodes: all of them would push the columns behind it out of sight.
    brief: shown.length < reached.length ? `${named} and ${reached.length - shown.length} more` : named,
    text: reached
      .map(([name, times]) => `${name}: ${count(times)}${LIMIT_WORDS[name] ? ` ${LIMIT_WORDS[name]}` : ""}`)
      .join("\n"),
  };
}

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

/** Periods that differ by less are told as one: `20.0 to 20.0 Hz` says nothing. */
const ALIKE = 1.01;

/**
 * Of a window whose samples stand for different times: `5 to 20 Hz` and how many were taken at which; null where all
 * are alike.
 */
export function ratesOf(periods: readonly Period[] | undefined): { brief: string; text: string } | null {
  const known = (periods ?? []).filter((period) => period.period_ns > 0);
  const lengths = known.map(({ period_ns }) => period_ns);
  if (known.length < 2 || Math.max(...lengths) <= ALIKE * Math.min(...lengths)) return null;
  const hertz = known.map(({ period_ns, samples }) => ({ rate: 1e9 / period_ns, samples }));
  hertz.sort((a, b) => b.rate - a.rate);
  const most = (hertz[0] as { rate: number }).rate;
  const least = (hertz[hertz.length - 1] as { rate: number }).rate;
  const parts = hertz.map(({ rate, samples }) => `${plural(samples, "sample")} at ${digits(rate)} Hz`);
  return {
    brief: `${digits(least)} to ${digits(most)} Hz`,
    text: `${parts.join(", ")}; each counts by the time that it stands for, in samples of the highest rate`,
  };
}
