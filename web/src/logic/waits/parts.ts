/**
 * What threads' time goes to: running, waiting for a CPU, and waits by what is waited for. In: a part as the server
 * names it. Out: its order, its words and its colour, which tells what it means wherever it stands.
 */
import type { Theme } from "../colour.ts";

export interface PartName {
  type: string;
  class: string;
}

interface Told {
  /** As in a selector; `cpu` and `run_queue` stand for themselves. */
  key: string;
  title: string;
  /** Behind "waited". */
  waitedFor: string;
  hint: string;
  colour: Record<Theme, string>;
}

const part = (
  key: string,
  title: string,
  waitedFor: string,
  hint: string,
  light: string,
  dark: string,
): readonly [string, Told] => [key, { key, title, waitedFor, hint, colour: { light, dark } }];

/** In the order in which they are stacked: work first, then what keeps from work, then what is mostly idle. */
const PARTS = new Map<string, Told>([
  part("cpu", "Running", "", "on a CPU", "#2e9e5b", "#3fb46d"),
  part("run_queue", "For a CPU", "for a CPU", "ready to run, but without a CPU", "#d8432f", "#ef6a55"),
  part(
    "lock",
    "Lock",
    "for another thread",
    "another thread: a lock, a condition, a parked worker",
    "#8e44c9",
    "#b07be6",
  ),
  part("io", "Disk", "for a disk", "a disk, or what stands for one", "#b5651d", "#d98b45"),
  part("page fault", "Page fault", "for memory", "memory that was not there yet", "#c2337f", "#e06aa8"),
  part("network", "Network", "for a socket", "the other end of a socket", "#2b6fd6", "#6ea1f2"),
  part("pipe", "Pipe", "for a pipe", "the other end of a pipe", "#0f8b8d", "#3db5b7"),
  part("poll", "Poll", "for any of several files", "any of several files or sockets", "#7d8db0", "#8b9bbf"),
  part("timer", "Timer", "for a time", "a time that it chose itself", "#a3a9b8", "#6c7589"),
  part(
    "other",
    "Other",
    "for something else",
    "anything else: kernel threads without work, children",
    "#c3c8d2",
    "#474f5e",
  ),
  part("", "Not told", "", "the sender does not say what for", "#dcdfe6", "#343b48"),
]);
const ORDER = [...PARTS.keys()];

/** The key of a part: the class of a wait, or the type. */
export function partKey({ type, class: of }: PartName): string {
  return type === "off_cpu" ? of : type;
}

/** Classes of other senders have names of their own. */
export function partOf(key: string): Told {
  return (
    PARTS.get(key) ?? {
      key,
      title: key,
      waitedFor: `(${key})`,
      hint: `wait.class is ${key}`,
      colour: { light: "#9aa3b5", dark: "#7a8599" },
    }
  );
}

/** Known ones in their order, then others as they came. */
export function inOrder(keys: readonly string[]): string[] {
  const place = (key: string) => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);
  return keys.toSorted((a, b) => place(a) - place(b));
}

/** How a wait began, in words. */
const STATES: Readonly<Record<string, string>> = {
  sleeping: "sleeping",
  uninterruptible: "not to be interrupted",
  idle: "a kernel thread without work",
  stopped: "stopped",
  woken: "since it was woken",
  preempted: "since another took its CPU",
  new: "since it began",
};

export function stateWords(state: string): string {
  return STATES[state] ?? state;
}
