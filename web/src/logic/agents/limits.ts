/**
 * Limits that an agent reached, or that a sender's labels reached. In: how often, by name. Out: text for a person. The
 * names are those that `agent/src` reports and `server/src/ingest` counts: `limits.test.ts` compares the lists.
 */
import { brief, count } from "../text/format.ts";

/** What was done less well when a limit was reached; no sample is lost by it. */
export const LIMIT_WORDS: Record<string, string> = {
  stacks_not_copied: "stacks truncated, since too many waited for their unwind tables at once",
  tables_late: "stacks truncated, since their unwind tables took too long",
  tables_without_room: "unwind tables that found no room: stacks through those files are truncated",
  symbols_left_out: "files with more functions than are kept of one: the rest has no names",
  lines_left_out: "files whose line numbers would have taken too much memory: they have function names only",
  tables_evicted: "unwind tables given up for others that were needed more",
  rate_lowered: "times that the rate was lowered, to stay within --cpu-limit",
  burst_rate_lowered: "times that a closer look had its rate lowered, to stay within --cpu-limit",
  burst_processes_left_out: "processes that a closer look left at the usual rate, since too many are of its name",
  memory_limit_reached:
    "intervals above --memory-limit: inlined functions and lines are left out, then unwind tables given up",
  process_events_lost: "starts and ends of processes not seen: a short process may lack its name or its stacks",
  mapping_events_lost: "new mappings of code not seen: a library that a short process loads late may lack names",
  mapping_events_refused: "CPUs whose new mappings the kernel does not tell: such libraries may lack names",
  mapping_looks_put_off: "looks at new code made later, since a program makes code all the time or very many load some",
  early_looks_skipped: "programs not looked at when they started, since many did: a short one may lack names",
  processes_forgotten: "processes forgotten for want of room: looked up anew when they run again",
  programs_forgotten: "programs replaced by an exec and forgotten for want of room: short ones may lack names",
  code_replaced: "unsymbolized addresses: other code was loaded there between the sample and the look at it",
  runtime_code_replaced:
    "unsymbolized frames of a language's runtime: their code was replaced between the sample and the look at it",
  runtime_frames_unreadable:
    "unsymbolized frames of a language's runtime: their process had ended, or did not let itself be read",
  runtime_frames_put_off:
    "unsymbolized frames of a language's runtime in some samples, since too many were new at once",
  runtime_frames_put_off_own:
    "unsymbolized frames of programs that make new code all the time: the rest of a second is kept for others",
  runtime_modules_forgotten: "looks through the modules of Python programs done anew, since memory for them was full",
  runtime_names_forgotten: "names of a language's functions given up for want of memory: they are asked for anew",
  runtimes_unknown: "programs with a language's runtime of a layout that this agent does not know",
  kernel_code_forgotten: "BPF programs not kept in mind for want of room: they have no names",
  files_given_up_unread: "files of ended programs given up before they were read: their functions may lack names",
  places_given_up: "addresses in files that were given up: they have a module and no function's name",
  reads_abandoned: "reads of a program's files or memory left out, since no answer came in time: names may be lacking",
  reads_refused: "such reads not begun, since too many of the same user or filesystem were stuck",
  perf_maps_searched: "perf maps too long to be kept: looked through anew each time, which takes CPU time",
  perf_maps_left_out: "perf maps of which only the newest part was looked through: older code has no names",
  wait_period_lengthened: "times that waits were told less often, since very many threads wait: sums stay right",
  wait_turns_lengthened: "times that waits were observed in fewer turns, to stay within half a percent of the CPUs",
  wait_stacks_moved: "waits with one frame, since their thread had gone on before its stack was taken",
  wait_stacks_refused: "waits whose thread could not be asked for its stack at once",
  wait_threads_left_out: "threads whose waits are not seen, since too many are there",
  wakers_left_out: "wake-ups whose thread is not told, since another stack was just walked on that CPU",
  run_queues_left_out: "waits for a CPU that are counted as nobody's, since those of too many programs are counted",
  run_queues_without_cpu:
    "waits for a CPU that are counted for all CPUs together, since too many programs on too many CPUs are told apart",
  run_queues_unreadable: "accounts of waits for a CPU that the server could not read: left out",
  label_values: "values of a label beyond what one sender may have within an hour: shown as [other]",
  label_names: "attributes beyond what one sender may have within an hour: left out",
  labels_of_series: "attributes beyond what one series may have: left out",
  profile_types: "profiles left out: of a type beyond those that one sender may have within an hour",
  label_name_length: "attributes left out for the length of their names",
  label_value_length: "values of labels that were cut for their length",
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
  const all = Object.entries(byName ?? {}).filter(([, times]) => times > 0);
  // Behind a dot stands a cause of a part of the same.
  const reached = all.filter(([name]) => !name.includes("."));
  const causesOf = (name: string) =>
    all
      .filter(([part]) => part.startsWith(`${name}.`))
      .map(([part, times]) => `\n  ${part.slice(name.length + 1)}: ${count(times)}`)
      .join("");
  const shown = reached.length > 2 ? reached.toSorted(([, a], [, b]) => b - a).slice(0, 1) : reached;
  const named = shown.map(([name, times]) => `${name} ${brief(times)}`).join(", ");
  return {
    reached: reached.length,
    // A column of the table of nodes: all of them would push the columns behind it out of sight.
    brief: shown.length < reached.length ? `${named} and ${reached.length - shown.length} more` : named,
    text: reached
      .map(
        ([name, times]) =>
          `${name}: ${count(times)}${LIMIT_WORDS[name] ? ` ${LIMIT_WORDS[name]}` : ""}${causesOf(name)}`,
      )
      .join("\n"),
  };
}
