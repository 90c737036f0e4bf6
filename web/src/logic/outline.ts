/**
 * A tree as an outline: the text equivalent of a flamegraph, opened where the person looks. In: a tree, where it begins and
 * which nodes are open. Out: the rows from top to bottom; of many siblings the largest, and one row that counts the rest.
 */
import { ROOT, type Tree } from "./tree.ts";

export interface OutlineRow {
  node: number;
  /** From 1, the beginning. */
  level: number;
  /** Place among its siblings, from 1, and how many there are. */
  place: number;
  siblings: number;
  state: "open" | "closed" | "leaf";
  /** The row stands for this many siblings that are not shown, `node` the largest of them; 0 for a frame's own row. */
  rest: number;
  /** Samples of the row. */
  samples: number;
  baseSamples: number;
}

export const MOST_SIBLINGS = 100;

/** Children with samples, the widest first. */
export function childrenOf(tree: Tree, node: number): number[] {
  const children: number[] = [];
  for (let i = node + 1; i < (tree.end[node] as number); i = tree.end[i] as number) {
    // The callers in a sandwich are no callees.
    if (node === ROOT && i >= tree.callersFrom) break;
    if ((tree.weight[i] as number) > 0) children.push(i);
  }
  return children.sort((a, b) => (tree.weight[b] as number) - (tree.weight[a] as number) || a - b);
}

export function outline(tree: Tree, from: number, open: ReadonlySet<number>): OutlineRow[] {
  const rows: OutlineRow[] = [];
  const base = (node: number) => tree.diff?.baseTotal[node] ?? 0;
  const pending = [{ node: from, level: 1, place: 1, siblings: 1, others: [] as number[] }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, level, place, siblings, others } = next;
    if (others.length > 0) {
      const sum = (of: (node: number) => number) => others.reduce((total, other) => total + of(other), 0);
      const samples = sum((other) => tree.total[other] as number);
      rows.push({ node, level, place, siblings, state: "leaf", rest: others.length, samples, baseSamples: sum(base) });
      continue;
    }
    const isOpen = open.has(node);
    const hasChildren = (tree.end[node] as number) > node + 1;
    const state = !hasChildren ? "leaf" : isOpen ? "open" : "closed";
    const samples = tree.total[node] as number;
    rows.push({ node, level, place, siblings, state, rest: 0, samples, baseSamples: base(node) });
    if (!isOpen) continue;
    const children = childrenOf(tree, node);
    const shown = children.slice(0, MOST_SIBLINGS);
    const rest = children.slice(MOST_SIBLINGS);
    const all = shown.length + Number(rest.length > 0);
    const entry = (child: number, at: number, left: number[]) =>
      pending.push({ node: child, level: level + 1, place: at, siblings: all, others: left });
    if (rest.length > 0) entry(rest[0] as number, all, rest);
    for (let i = shown.length - 1; i >= 0; i--) entry(shown[i] as number, i + 1, []);
  }
  return rows;
}

/** How many frames a way of single callees is opened at once. */
const LONGEST_WAY = 24;

/** What is opened with a node: itself, and the way below it as long as nothing turns off. */
export function openedWith(tree: Tree, node: number): number[] {
  const opened: number[] = [];
  for (let at = node; opened.length < LONGEST_WAY; ) {
    opened.push(at);
    const children = childrenOf(tree, at);
    if (children.length !== 1) break;
    at = children[0] as number;
  }
  return opened;
}
