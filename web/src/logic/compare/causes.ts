/**
 * Why two windows differ. In: the tree of a difference that the server judged. Out: causes, the largest first, each the
 * lowest frame that explains a change, with the chain of callers that differ by the same amount only because they call
 * it. What was not shown to differ is no cause.
 */
import type { DiffTopRow } from "../../api/types.ts";
import { fitName } from "../text/names.ts";
import { isRow } from "../tree/rows.ts";
import { frameName, ROOT, type Tree } from "../tree/tree.ts";
import { type Finding, findings, nameOf } from "./findings.ts";

export interface Cause {
  finding: Finding;
  /** From the outermost caller that differs by the same amount down to the frame itself. */
  chain: number[];
}

/** A caller differs by the same amount where its callee has this part of its change. */
const SAME_AMOUNT = 0.85;

export function causesOf(tree: Tree, measure: "total" | "self"): Cause[] {
  return findings(tree, measure).map((finding) => ({
    finding,
    // Of what frames take themselves, callers have no part.
    chain: measure === "self" ? [finding.node] : chainTo(tree, finding.node),
  }));
}

function chainTo(tree: Tree, node: number): number[] {
  const chain = [node];
  for (let at = node; at > ROOT; ) {
    const caller = tree.parent[at] as number;
    if (caller <= ROOT || isRow(tree, caller) || !isSameChange(tree, caller, at)) break;
    chain.unshift(caller);
    at = caller;
  }
  return chain;
}

function isSameChange(tree: Tree, caller: number, callee: number): boolean {
  const { diff } = tree;
  if (diff === null || diff.states[diff.state[caller] as number] === "same") return false;
  const [whole, part] = [diff.delta[caller] as number, diff.delta[callee] as number];
  return Math.sign(whole) === Math.sign(part) && Math.abs(part) >= SAME_AMOUNT * Math.abs(whole);
}

/** Rows that differ, the largest change first: of functions by what they take themselves, or of a label's values. */
export function changedRows<Row extends Pick<DiffTopRow, "state" | "delta">>(rows: readonly Row[]): Row[] {
  return rows.filter(({ state }) => state !== "same").sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta));
}

/** Characters of a name in a line of several. */
const ROOM = 32;
/** Threads that are named: more of them are no one's doing. */
const MOST_THREADS = 2;

/**
 * `tree::walk and 1 more; thread housekeeping`: the largest cause, with its caller where another cause has the same
 * name, and the threads that changed; empty where there is none.
 */
export function headline(tree: Tree, causes: readonly Cause[], threads: readonly DiffTopRow[]): string {
  const first = causes[0];
  if (first === undefined) return "";
  const changed = changedRows(threads).filter(({ name }) => name !== "");
  const name = nameOf(tree, first.finding);
  const caller = tree.parent[first.finding.node] as number;
  const isShared = causes.slice(1).some(({ finding }) => nameOf(tree, finding) === name);
  const below = isShared && caller > ROOT ? ` below ${fitName(frameName(tree, caller), ROOM)}` : "";
  const more = causes.length > 1 ? ` and ${causes.length - 1} more` : "";
  const named = changed.length > MOST_THREADS ? [] : changed.map((row) => fitName(row.name, ROOM));
  const of = named.length === 0 ? "" : `; thread${named.length > 1 ? "s" : ""} ${named.join(", ")}`;
  return `${fitName(name, ROOM)}${below}${more}${of}`;
}

/** The names of a chain, outermost first. */
export function chainNames(tree: Tree, { chain }: Cause): string[] {
  return chain.map((node) => frameName(tree, node));
}
