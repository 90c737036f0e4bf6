/**
 * Which frame is zoomed into, as text for the URL. A path is the frames' names from the root's child down, joined by
 * `;` (a `;` or `\` within a name is escaped by `\`); one that would make the URL too long is written as `#` and a hash
 * of the path. A row of labels stands in a path as `service=kubelet`; a path that this tree has not is looked for
 * whatever its rows. Text that is no path is taken as a frame's name: the largest frame of that name is meant.
 */
import { isRow } from "./rows.ts";
import { ancestors, frameName, moduleName, ROOT, type Tree } from "./tree.ts";

const LONGEST_PATH = 1500;
/** The root as a selected frame: a hash of no path. */
const WHOLE = "#";

export function focusOf(tree: Tree, node: number): string {
  if (node === ROOT) return "";
  const names = ancestors(tree, node).map((i) => escapeName(stepName(tree, i)));
  const path = names.join(";");
  return path.length <= LONGEST_PATH ? path : `#${hash(path)}`;
}

/** A value alone might be empty, or a function's name. */
function stepName(tree: Tree, node: number): string {
  const name = frameName(tree, node);
  return isRow(tree, node) ? `${moduleName(tree, node)}=${name}` : name;
}

/** The same of a selected frame, where an empty text is none and the root has a text of its own. */
export function selectionOf(tree: Tree, node: number | null): string {
  return node === null ? "" : focusOf(tree, node) || WHOLE;
}

export function findSelection(tree: Tree, text: string): number | null {
  return text === "" ? null : text === WHOLE ? ROOT : findFocus(tree, text);
}

/** The node that the text means, or null where this tree has none. An empty text means the root. */
export function findFocus(tree: Tree, focus: string): number | null {
  if (focus === "") return ROOT;
  if (focus.startsWith("#")) return byHash(tree, focus.slice(1));
  const names = splitPath(focus);
  return byPath(tree, names) ?? byName(tree, focus) ?? besideRows(tree, names);
}

export function escapeName(name: string): string {
  return name.replace(/[\\;]/g, "\\$&");
}

export function splitPath(path: string): string[] {
  const names: string[] = [];
  let name = "";
  for (let i = 0; i < path.length; i++) {
    const c = path[i];
    if (c === "\\" && i + 1 < path.length) name += path[++i];
    else if (c === ";") {
      names.push(name);
      name = "";
    } else name += c;
  }
  names.push(name);
  return names;
}

/** Siblings may share a name (another module or kind), so every candidate of each level is kept. */
function byPath(tree: Tree, names: string[], from = ROOT): number | null {
  let nodes = [from];
  for (const name of names) {
    const next: number[] = [];
    for (const node of nodes) {
      for (let i = node + 1; i < (tree.end[node] as number); i = tree.end[i] as number) {
        if (stepName(tree, i) === name) next.push(i);
      }
    }
    if (next.length === 0) return null;
    nodes = next;
  }
  return largest(tree, nodes);
}

/**
 * The frame by its callers alone, where rows were added, taken away or changed since it was named: below any of the
 * rows, or none. The texts of its rows lead the path.
 */
function besideRows(tree: Tree, names: string[]): number | null {
  const rows = innermostRows(tree);
  for (let from = rows.length === 1 ? 1 : 0; from < names.length; from++) {
    const found = rows.flatMap((row) => byPath(tree, names.slice(from), row) ?? []);
    if (found.length > 0) return largest(tree, found);
    if (!(names[from] as string).includes("=")) return null;
  }
  return null;
}

/** The innermost rows, below which stacks begin; the root where there are none. */
function innermostRows(tree: Tree): number[] {
  const rows: number[] = [];
  for (let i = ROOT; i < tree.size; ) {
    const isBegin = i === ROOT || isRow(tree, i);
    const below = i + 1;
    if (isBegin && (below >= tree.size || !isRow(tree, below) || tree.parent[below] !== i)) rows.push(i);
    // Below a stack's first frame stands no row.
    i = isBegin ? below : (tree.end[i] as number);
  }
  return rows;
}

function byName(tree: Tree, name: string): number | null {
  const nodes: number[] = [];
  for (let i = 1; i < tree.size; i++) if (frameName(tree, i) === name && !isRow(tree, i)) nodes.push(i);
  return largest(tree, nodes);
}

function byHash(tree: Tree, wanted: string): number | null {
  const paths: string[] = [];
  for (let i = 1; i < tree.size; i++) {
    const depth = tree.depth[i] as number;
    const above = depth === 1 ? "" : `${paths[depth - 1]};`;
    paths[depth] = above + escapeName(stepName(tree, i));
    if ((paths[depth] as string).length > LONGEST_PATH && hash(paths[depth] as string) === wanted) return i;
  }
  return null;
}

function largest(tree: Tree, nodes: number[]): number | null {
  let best: number | null = null;
  for (const node of nodes) {
    if (best === null || (tree.weight[node] as number) > (tree.weight[best] as number)) best = node;
  }
  return best;
}

/** 64 bits of FNV-1a as two 32-bit lanes with different offsets: enough to tell the paths of one tree apart. */
function hash(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    a = Math.imul(a ^ c, 0x01000193);
    b = Math.imul(b ^ c, 0x01000193) ^ (b >>> 15);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}
