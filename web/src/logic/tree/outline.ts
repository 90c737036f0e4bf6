/**
 * A tree as an outline: the text equivalent of a flamegraph, opened where the person looks. In: a tree, where it begins
 * and which nodes are open. Out: the rows from top to bottom; of many siblings the largest, and one row that counts the
 * rest.
 */
import { ancestors, distance, frameName, moduleName, ROOT, type Tree } from "./tree.ts";

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
function childrenOf(tree: Tree, node: number): number[] {
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

/** Rows that the address holds; of more, those nearest to the beginning. */
export const MOST_OPEN = 400;
const NONE = "-";

/**
 * A number for the way from the root to a node, given the one of its caller: the same in each tree that has this way.
 */
function wayOf(tree: Tree, above: number, node: number): number {
  let way = above;
  // Behind a text's last letter stands NaN, which counts as zero: texts of other lengths are other texts.
  for (const text of [moduleName(tree, node), frameName(tree, node)])
    for (let i = 0; i <= text.length; i++) way = Math.imul(way ^ text.charCodeAt(i), 0x01000193);
  return way;
}

/** The way to a node in sight, or to where the outline begins. */
function beginOf(tree: Tree, from: number): number {
  return ancestors(tree, from).reduce((above, node) => wayOf(tree, above, node), 0);
}

const code = (way: number) => (way >>> 0).toString(36);

/** Which rows are open, as text for the address; empty where it is what opens by itself. */
export function openText(tree: Tree, from: number, open: ReadonlySet<number>): string {
  const usual = openedWith(tree, from);
  const ways = new Map<number, number>();
  for (const node of [...open].sort((a, b) => a - b)) {
    const above = ways.get(tree.parent[node] as number);
    if (node === from) ways.set(node, beginOf(tree, from));
    else if (above !== undefined) ways.set(node, wayOf(tree, above, node));
  }
  if (ways.size === usual.length && usual.every((node) => ways.has(node))) return "";
  const nodes = [...ways.keys()].sort((a, b) => distance(tree, a) - distance(tree, b));
  return (
    nodes
      .slice(0, MOST_OPEN)
      .map((node) => code(ways.get(node) as number))
      .join(".") || NONE
  );
}

/** The open rows that a text means, as far as this tree has them. */
export function openOf(tree: Tree, from: number, text: string): Set<number> {
  if (text === "") return new Set(openedWith(tree, from));
  const wanted = new Set(text.split("."));
  const open = new Set<number>();
  const pending: [node: number, way: number][] = [[from, beginOf(tree, from)]];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [node, way] = next;
    if (!wanted.has(code(way))) continue;
    open.add(node);
    for (const child of childrenOf(tree, node)) pending.push([child, wayOf(tree, way, child)]);
  }
  return open;
}
