/**
 * Who ended single waits. In: a timeline's answer. Out: words of each wait's waker, such as `writer (db), in unlock()`;
 * empty where nobody was sampled.
 */
import type { TimelineAnswer } from "../../api/types.ts";

/** Where every kernel thread begins: it says nothing of what one does. */
export const KERNEL_BEGIN: ReadonlySet<string> = new Set(["ret_from_fork_asm", "ret_from_fork", "kthread"]);
/** What an agent calls who is no thread. */
const INTERRUPT = "[interrupt]";
/** Kernel functions that wake whoever it is: of an interrupt the first other one says which. */
const WAKING = /^(?:(?:sched_)?ttwu_|try_to_wake_up|s?wake_up|__wake_up|default_wake_function|autoremove_wake)/;
/** The C library, by which a program asks the kernel: what asked it says more. */
const C_LIBRARY = /^(?:libc|libpthread|ld-musl|libc\.musl)\b.*\.so/;

/** A function with its brackets; what has no name stands in others already. */
const called = (name: string) => (name === "" || name.startsWith("[") ? name : `${name}()`);

/** The innermost function of the program, of an interrupt its own, of a kernel thread the outermost. */
function placeOf({ nodes, strings, kinds }: TimelineAnswer, leaf: number, isInterrupt: boolean): string {
  let [ofLibrary, inner, outer] = ["", "", ""];
  for (let node = leaf; node > 0; node = nodes.parent[node] ?? 0) {
    const name = strings[nodes.name[node] ?? 0] ?? "";
    if (kinds[nodes.kind[node] ?? 0] === "kernel") {
      if (inner === "" && !WAKING.test(name)) inner = name;
      if (!KERNEL_BEGIN.has(name)) outer = name;
    } else if (!C_LIBRARY.test(strings[nodes.module[node] ?? 0] ?? "")) {
      return called(name);
    } else if (ofLibrary === "") {
      ofLibrary = name;
    }
  }
  return called(ofLibrary || (isInterrupt ? inner : outer));
}

/** Of each sample, by its place among those of the answer. */
export function wokenBy(answer: TimelineAnswer): (sample: number) => string {
  const { wakers, samples } = answer;
  const known = new Map<number, string>();
  const words = (at: number): string => {
    if (wakers === undefined) return "";
    const [thread, process] = [wakers.thread[at] ?? "", wakers.process[at] ?? ""];
    const isInterrupt = thread === INTERRUPT;
    const who = isInterrupt ? "an interrupt" : process === "" || process === thread ? thread : `${thread} (${process})`;
    const place = placeOf(answer, wakers.stack[at] ?? 0, isInterrupt);
    return place === "" ? who : `${who}, in ${place}`;
  };
  return (sample) => {
    const at = samples.waker?.[sample] ?? null;
    if (at === null) return "";
    const told = known.get(at) ?? words(at);
    known.set(at, told);
    return told;
  };
}
