/**
 * Which labels stand as rows above the stacks. In: what the address says. Out: labels as the server takes them. Where
 * nobody chose, the page does; an address that names frames by their way from the root keeps the rows, or none, by
 * which they were named.
 */
import { parseSelector } from "./selector.ts";

/** What of the address decides about rows. */
export interface Grouped {
  view: string;
  /** Empty: left out. */
  group: string;
  query: string;
  focus: string;
  frame: string;
  open: string;
  transform: string;
}

export interface Rows {
  /** Outermost first. */
  labels: readonly string[];
  /** The page chose them: one row alone would say nothing, and is left out. */
  isOwn: boolean;
}

const NONE = "none";
const AUTO = "auto";
const OWN: Rows = { labels: ["service"], isOwn: true };
const NO_ROWS: Rows = { labels: [], isOwn: false };
/** The server takes no more. */
const MOST = 4;

const namesFrames = ({ focus, frame, open, transform }: Grouped) => `${focus}${frame}${open}${transform}` !== "";

/** The rows of a window where nobody chose: its services, unless the selection is one of them. */
function ownRows({ view, query }: Grouped): Rows {
  const isOfOne = parseSelector(query)?.some(({ label, operator }) => label === "service" && operator === "=") ?? true;
  return (view === "explore" || view === "heatmap") && !isOfOne ? OWN : NO_ROWS;
}

/** Whether a text says which rows there are. */
export function isRowsText(text: string): boolean {
  const labels = text.split(",");
  return labels.length <= MOST && labels.every((label) => label !== "");
}

export function rowsOf(state: Grouped): Rows {
  const { group } = state;
  if (group === NONE || (group === "" && namesFrames(state))) return NO_ROWS;
  if (group === "" || group === AUTO) return ownRows(state);
  const labels = [...new Set(group.split(","))].filter((label) => label !== "").slice(0, MOST);
  return labels.length === 0 ? NO_ROWS : { labels, isOwn: false };
}

/**
 * What `group` becomes with a step: the first frame that is named writes that the page chose the rows, and the last
 * that is no longer named writes that there were none, so that no step changes the tree that it is made in.
 */
export function groupBehind(before: Grouped, next: Grouped): string {
  if (next.group !== "" || before.group !== "" || namesFrames(before) === namesFrames(next)) return next.group;
  if (ownRows(before).labels.length === 0 || ownRows(next).labels.length === 0) return next.group;
  return namesFrames(next) ? AUTO : NONE;
}

/** Labels that are asked for most, each alone or below the one that holds it. */
const USUAL = ["service", "service,process", "process", "pod", "pod,process", "node", "node,service", "thread"];

/** What can be chosen, of the labels that there are; what is chosen is among it. */
export function rowChoices(state: Grouped, known: readonly string[]): (readonly [value: string, title: string])[] {
  const isThere = (text: string) => text.split(",").every((label) => known.includes(label));
  const usual = USUAL.filter(isThere);
  const others = known.filter((label) => !usual.includes(label));
  const all = [...usual, ...others];
  const chosen = chosenRows(state);
  const shown = chosen === AUTO || chosen === NONE || all.includes(chosen) ? all : [...all, chosen];
  return [
    ...(ownRows(state).labels.length > 0 || chosen === AUTO ? [[AUTO, "auto"] as const] : []),
    [NONE, "none"],
    ...shown.map((text) => [text, text.replaceAll(",", ", ")] as const),
  ];
}

/** Which of the choices it is now. */
export function chosenRows(state: Grouped): string {
  const { labels, isOwn } = rowsOf(state);
  return isOwn ? AUTO : labels.join(",") || NONE;
}
