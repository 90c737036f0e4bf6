/**
 * The way down into a selection: service, then pod or unit, process, thread; before it the node, beside it the
 * container. In: a selector. Out: its steps, each with what was selected before it, and the label by which the next
 * click narrows.
 */
import { formatSelector, type LabelMatcher, parseSelector } from "./selector.ts";

/** Labels of one step, of which a machine has the one or the other. */
const STEPS: readonly (readonly string[])[] = [["service"], ["pod", "unit"], ["process"], ["thread"]];
/** Labels beside the way, and the step that they lead to. */
const BESIDE: Readonly<Record<string, string>> = { node: "service", container: "process", tgid: "thread" };
/** From left to right: a node before all that runs on it, a container before its processes. */
const CRUMBS = ["node", "service", "pod", "unit", "container", "process", "thread"];
const NODE = "node";
/** What no two nodes have in common: on another node it would select nothing. */
const OF_ONE_NODE = ["pod", "container"];

export interface Crumb {
  label: string;
  value: string;
  /**
   * The selector without this step and those below it: its siblings are the label's values there. Of a node what is
   * below it stays, such as a service that is looked at node by node.
   */
  above: string;
  /** Another value keeps what is below. */
  keepsBelow: boolean;
  /** The selector without this step alone; null for steps of the way, which end what is below them. */
  without: string | null;
  /** The selector up to this step. */
  query: string;
}

export interface Path {
  crumbs: Crumb[];
  /** What is selected beside the way. */
  filters: LabelMatcher[];
}

const stepOf = (label: string) => STEPS.findIndex((labels) => labels.includes(label));

/** Null where the selector can't be read. */
export function pathOf(query: string): Path | null {
  const matchers = parseSelector(query);
  if (matchers === null) return null;
  const isCrumb = ({ label, operator }: LabelMatcher) => operator === "=" && CRUMBS.includes(label);
  const filters = matchers.filter((one) => !isCrumb(one));
  const chosen = matchers.filter(isCrumb).sort((a, b) => CRUMBS.indexOf(a.label) - CRUMBS.indexOf(b.label));
  const crumbs = chosen.map(({ label, value }, i) => {
    const others = chosen.filter((_, at) => at !== i);
    const keepsBelow = label === NODE;
    const kept = keepsBelow ? others.filter((one) => !OF_ONE_NODE.includes(one.label)) : chosen.slice(0, i);
    return {
      label,
      value,
      above: formatSelector([...filters, ...kept]),
      keepsBelow,
      without: label in BESIDE ? formatSelector([...filters, ...others]) : null,
      query: formatSelector([...filters, ...chosen.slice(0, i + 1)]),
    };
  });
  return { crumbs, filters };
}

/** What a selection is looked at by, once a value of `label` was chosen; null where nothing lies below it. */
export function nextLabel(label: string, known: readonly string[]): string | null {
  const beside = BESIDE[label];
  if (beside !== undefined) return beside;
  const step = stepOf(label);
  if (step < 0) return null;
  const below = STEPS.slice(step + 1).flat();
  return below.find((one) => known.includes(one)) ?? null;
}

/** What is looked at where nothing, or one value alone, is there by `label`; null where nothing comes behind it. */
export function labelBehind(label: string, known: readonly string[]): string | null {
  const flat = STEPS.flat();
  const at = flat.indexOf(label);
  return at < 0 ? null : (flat.slice(at + 1).find((one) => known.includes(one)) ?? null);
}

/** Whether a label stands further down the way than another one. */
export function isBelow(label: string, other: string): boolean {
  const flat = STEPS.flat();
  return flat.indexOf(label) > flat.indexOf(other) && flat.includes(other);
}

/** The selector without one of its matchers. */
export function withoutMatcher(query: string, matcher: LabelMatcher): string {
  const text = formatSelector([matcher]);
  return formatSelector((parseSelector(query) ?? []).filter((one) => formatSelector([one]) !== text));
}
