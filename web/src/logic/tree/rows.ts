/**
 * Rows of labels above the stacks: nodes of the kind `label`, whose module is the label and whose name its value, empty
 * where samples have none. They are no functions. In: a tree with such rows. Out: what they are called, and whose time
 * stands below them.
 */
import type { TreeColumns } from "../../api/types.ts";
import type { LabelMatcher } from "../labels/selector.ts";
import { ancestors, frameName, kindName, moduleName, type Tree } from "./tree.ts";

const LABEL = "label";

/** The number of their kind; -1 where the server knows none. */
export const rowKind = ({ kinds }: Pick<Tree, "kinds">) => kinds.indexOf(LABEL);

export function isRow(tree: Tree, node: number): boolean {
  return kindName(tree, node) === LABEL;
}

/** Kinds of nodes that are no function's: all samples together, folded frames, rows. */
export function isNoFunction(kind: string): boolean {
  return kind === "root" || kind === "trimmed" || kind === LABEL;
}

/** `service kubelet` of a row, `no pod` where its samples have none; of a frame its name. */
export function titleOf(tree: Tree, node: number): string {
  const name = frameName(tree, node);
  if (!isRow(tree, node)) return name;
  return name === "" ? `no ${moduleName(tree, node)}` : `${moduleName(tree, node)} ${name}`;
}

/** Whose samples stand at a node: the values of its rows, outermost first. */
export function rowMatchers(tree: Tree, node: number): LabelMatcher[] {
  return ancestors(tree, node)
    .filter((at) => isRow(tree, at))
    .map((at) => ({ label: moduleName(tree, at), operator: "=", value: frameName(tree, at) }));
}

/** An answer's columns without the row, where all samples have the same value: it divides nothing. */
export function withoutOneRow(nodes: TreeColumns, kinds: readonly string[]): TreeColumns {
  const { parent, kind } = nodes;
  const row = kinds.indexOf(LABEL);
  // The second node is the root's first child; it is its only one where no other stands below the root.
  if (row < 0 || kind?.[1] !== row || parent.indexOf(0, 2) >= 0 || nodes.self?.[0] !== 0) return nodes;
  const left = Object.fromEntries(
    Object.entries(nodes as unknown as Record<string, number[]>).map(([name, column]) => [
      name,
      column.toSpliced(1, 1),
    ]),
  ) as unknown as TreeColumns;
  left.parent = left.parent.map((of) => Math.max(of - 1, of < 0 ? -1 : 0));
  left.self[0] = nodes.self[1] as number;
  return left;
}
