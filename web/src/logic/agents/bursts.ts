/**
 * Closer looks (bursts): of which nodes they can be asked, what they may cost, and what became of them. In: rows of
 * agents, what a person typed, bursts. Out: the request to the server, and words. What can't be is the server's to say.
 */
import type { Burst, BurstRequest, NodeRow } from "../../api/types.ts";
import { formatSelector, type LabelMatcher, parseSelector } from "../labels/selector.ts";
import { count, digits, duration, percent, plural } from "../text/format.ts";

/** The server takes no longer one. */
export const MOST_SECONDS = 60;
/** CPU time of kernel and agent for a sample: what a sample costs where stacks are usual. */
const SECONDS_A_SAMPLE = 25e-6;
/** CPUs that a list is counted up to; the server takes no higher number. */
const MOST_CPUS = 65_536;

export interface Wish {
  /** A node's name, or a selector in braces. */
  nodes: string;
  cpus: string;
  service: string;
  process: string;
  /** Of what else, as a selector; empty: of all. */
  rest: string;
  frequency: string;
  seconds: string;
}

type BurstNode = Pick<NodeRow, "node" | "cpus" | "burst_limit_hz">;

/** Nodes whose agents ask for bursts, each once. */
export function nodesThatCan(rows: readonly BurstNode[]): BurstNode[] {
  const nodes = new Map<string, BurstNode>();
  for (const row of rows) {
    const limit = row.burst_limit_hz ?? 0;
    if (limit > (nodes.get(row.node)?.burst_limit_hz ?? 0)) nodes.set(row.node, row);
  }
  return [...nodes.values()];
}

function accepts({ operator, value }: LabelMatcher, node: string): boolean {
  if (operator === "=") return node === value;
  if (operator === "!=") return node !== value;
  const found = new RegExp(`^(?:${value})$`, "s").test(node);
  return operator === "=~" ? found : !found;
}

/** Those that a person means; null where that can't be told here. */
export function nodesMeant(text: string, can: readonly BurstNode[]): BurstNode[] | null {
  const wanted = text.trim();
  if (!wanted.startsWith("{")) return can.filter(({ node }) => node === wanted);
  const matchers = parseSelector(wanted);
  if (matchers === null || matchers.some(({ label }) => label === "cluster")) return null;
  const ofNodes = matchers.filter(({ label }) => label === "node");
  try {
    return can.filter(({ node }) => ofNodes.every((one) => accepts(one, node)));
  } catch {
    // Patterns of the server are not all patterns of the browser.
    return null;
  }
}

/** How many CPUs `0,2-3` names; null where it can't be read. */
export function cpusNamed(text: string): number | null {
  const cpus = new Set<number>();
  for (const part of text.split(",")) {
    const found = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    if (found === null) return null;
    const first = Number(found[1]);
    const last = Number(found[2] ?? found[1]);
    if (first > last || last >= MOST_CPUS) return null;
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return cpus.size;
}

const whole = (text: string) => (/^\s*-?\d{1,9}\s*$/.test(text) ? Number(text) : null);

/** Which nodes, and of what else than fields have. */
function subjectOf(nodes: string, rest: string): Pick<BurstRequest, "node" | "query"> | null {
  if (rest === "") return nodes.startsWith("{") ? { query: nodes } : { node: nodes };
  const named: LabelMatcher[] = [{ label: "node", operator: "=", value: nodes }];
  const [ofNodes, more] = [nodes.startsWith("{") ? parseSelector(nodes) : named, parseSelector(rest)];
  return ofNodes === null || more === null ? null : { query: formatSelector([...ofNodes, ...more]) };
}

/** What the server is asked, or why it can't be asked. */
export function requestOf(wish: Wish): BurstRequest | { fault: string } {
  const nodes = wish.nodes.trim();
  const frequency = whole(wish.frequency);
  const seconds = whole(wish.seconds);
  if (nodes === "") return { fault: 'Say which node, or a selector of several such as {node=~"db-.*"}.' };
  if (frequency === null) return { fault: "The frequency is a whole number of samples a second, such as 999." };
  if (seconds === null) return { fault: "The seconds are a whole number, such as 10." };
  const subject = subjectOf(nodes, wish.rest.trim());
  if (subject === null) return { fault: 'What else it is of is a selector, such as {container="api"}.' };
  const given = { cpus: wish.cpus.trim(), service: wish.service.trim(), process: wish.process.trim() };
  return {
    ...subject,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== "")),
    frequency_hz: frequency,
    seconds,
  };
}

/** What it may cost, in words; empty where that can't be told. */
export function costText(wish: Wish, meant: readonly BurstNode[] | null): string {
  const [frequency, seconds] = [whole(wish.frequency), whole(wish.seconds)];
  if (frequency === null || seconds === null || frequency < 1 || seconds < 1) return "";
  const named = wish.cpus.trim() === "" ? null : cpusNamed(wish.cpus);
  if (meant === null || meant.length === 0 || (named === null && wish.cpus.trim() !== "")) return "";
  const matchers = [wish.nodes, wish.rest].flatMap((text) => (text.includes("=") ? (parseSelector(text) ?? []) : []));
  // How many CPUs those are is the server's to say.
  if (matchers.some(({ label }) => label === "cpu")) return "";
  const isOfSome = matchers.some(({ label }) => label !== "node") || `${wish.service}${wish.process}`.trim() !== "";
  const cpus = named === null ? meant.reduce((sum, one) => sum + one.cpus, 0) : named * meant.length;
  const rate = frequency * cpus;
  const some = isOfSome ? ", less where what is chosen seldom runs" : "";
  return (
    `${count(frequency)} Hz × ${plural(cpus, "CPU")} × 25 µs: about ${digits(rate * SECONDS_A_SAMPLE)} cores ` +
    `for ${duration(seconds)} (${percent(frequency * SECONDS_A_SAMPLE)} of each CPU), ` +
    `up to ${count(rate * seconds)} samples${some}.`
  );
}

/** Which nodes are meant, in words. */
export function meantText(text: string, meant: readonly BurstNode[] | null): string {
  if (text.trim() === "") return "";
  if (meant === null) return "The server says which nodes these are.";
  if (meant.length === 0) return "No node of these asks for bursts now.";
  const limit = Math.max(...meant.map((one) => one.burst_limit_hz ?? 0));
  return `${plural(meant.length, "node")}, at most ${count(limit)} Hz.`;
}

/** The highest rate that any of them takes. */
export const limitOf = (nodes: readonly BurstNode[]): number =>
  nodes.reduce((most, one) => Math.max(most, one.burst_limit_hz ?? 0), 0);

export const isUnderWay = ({ state }: Burst): boolean => state === "waiting" || state === "running";

/** What became of it. */
export function stateText({ state, until_ms }: Burst, now: number): string {
  const left = until_ms === null ? 0 : Math.ceil((until_ms - now) / 1000);
  const words: Record<Burst["state"], string> = {
    waiting: "waiting: its agent has not taken it yet",
    running: left > 0 ? `running, ${duration(left)} left` : "running: it is about to end",
    ended: "ended: it ran to its end",
    cancelled: "cancelled: it was ended early",
    refused: "refused: it did not begin",
    lost: "lost: its agent tells nothing of it",
  };
  return words[state] ?? state;
}

/** What is looked at, and how finely. */
export function subjectText({ cpus, service, process, query, frequency_hz, seconds }: Burst): string {
  const of = [
    cpus === "" ? "all CPUs" : `CPU ${cpus}`,
    ...(service === "" ? [] : [`service ${service}`]),
    ...(process === "" ? [] : [`process ${process}`]),
    ...(query === "" ? [] : [query]),
  ];
  return `${of.join(", ")}, ${count(frequency_hz)} Hz for ${duration(seconds)}`;
}

/** What it gave and took, once its agent told. */
export function takenText({ state, samples, cpu_seconds }: Burst): string {
  if (state === "waiting" || state === "refused" || (samples === 0 && cpu_seconds === 0)) return "";
  return `${plural(samples, "sample")}, the agent took ${duration(cpu_seconds)} of CPU time`;
}

/** CPUs of a list that a selector names one by one; more of them would be no selector that a person reads. */
const MOST_LISTED = 16;

function cpuMatchers(cpus: string): LabelMatcher[] {
  const named = cpus === "" ? null : cpusNamed(cpus);
  if (named === null || named > MOST_LISTED) return [];
  const all = cpus.split(",").flatMap((part) => {
    const [first, last = first] = part.trim().split("-").map(Number) as [number, number?];
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
  const values = [...new Set(all)].map(String);
  const [only] = values;
  return [
    values.length === 1 && only !== undefined
      ? { label: "cpu", operator: "=", value: only }
      : { label: "cpu", operator: "=~", value: values.join("|") },
  ];
}

/** Where it is looked at: its node and window; null before it began. */
export function shownAt(burst: Burst): { query: string; from: string; until: string } | null {
  const { from_ms, until_ms, node, cpus, service, process, query, seconds } = burst;
  if (from_ms === null) return null;
  const equal = Object.entries({ node, service, process }).filter(([, value]) => value !== "");
  const until = Math.max(until_ms ?? from_ms + seconds * 1000, from_ms + 1000);
  return {
    query: formatSelector([
      ...equal.map(([label, value]): LabelMatcher => ({ label, operator: "=", value })),
      ...(parseSelector(query) ?? []),
      ...cpuMatchers(cpus),
    ]),
    from: String(Math.floor(from_ms)),
    until: String(Math.ceil(until)),
  };
}
