/** An address in a few words. */
import { plainLine } from "../text/plain.ts";

const ROOM = 90;
const WORDS: Record<string, string> = {
  compare: "Compare",
  heatmap: "Heatmap",
  timeline: "Timeline",
  threads: "Threads' time",
  nodes: "Nodes",
};

/** `Compare {service="shop"}, A {…}, now-1h to now`; `timeText` tells a time of an address. */
export function titleOf(address: string, timeText: (text: string) => string): string {
  const given = new URLSearchParams(address.replace(/^[^?]*/, ""));
  const view = WORDS[given.get("view") ?? ""] ?? "Explore";
  const said = (name: string, before = "") => (given.get(name) ? [`${before}${given.get(name)}`] : []);
  const from = timeText(given.get("from") ?? "now-15m");
  const until = timeText(given.get("until") ?? "now");
  const time = view === "Nodes" ? [] : [`${from} to ${until}`];
  return plainLine(
    [view, ...said("query"), ...said("baseQuery", "against "), ...said("find"), ...time].join(", "),
    ROOM,
  );
}
