/**
 * An answer with its tree grown. In: the server's JSON. Out: everything of the answer but the columns, and the tree that they describe, or what
 * is wrong with them. Of a million frames this takes a third of a second: it may run anywhere, what comes out can be handed over without copies.
 */
import type { DiffAnswer, FlamegraphAnswer, TreeColumns } from "../../api/types.ts";
import { BadTree, diffTreeOf, type Tree, treeOf } from "./tree.ts";

/** What a tree is made of, and gone with it. */
type Columns = { strings: string[]; kinds: string[]; nodes: TreeColumns };

export type Grown<Answer extends Columns> = Omit<Answer, keyof Columns> & { tree: Tree | null; fault: string };

export type GrownFlamegraph = Grown<FlamegraphAnswer>;
export type GrownDiff = Grown<DiffAnswer>;

/** What grows from which answer. */
export interface Growths {
  flamegraph: GrownFlamegraph;
  diff: GrownDiff;
}

export type Kind = keyof Growths;

/** Throws where the text is no JSON. */
export function grow<K extends Kind>(kind: K, text: string): Growths[K] {
  const answer: unknown = JSON.parse(text);
  const grown = kind === "diff" ? growDiff(answer as DiffAnswer) : growFlamegraph(answer as FlamegraphAnswer);
  return grown as Growths[K];
}

function growFlamegraph(answer: FlamegraphAnswer): GrownFlamegraph {
  const { strings: _, kinds: __, nodes: ___, ...rest } = answer;
  return { ...rest, ...sound(() => treeOf(answer)) };
}

function growDiff(answer: DiffAnswer): GrownDiff {
  const { strings: _, kinds: __, nodes: ___, ...rest } = answer;
  return { ...rest, ...sound(() => diffTreeOf(answer, "both")) };
}

function sound(make: () => Tree): { tree: Tree | null; fault: string } {
  try {
    return { tree: make(), fault: "" };
  } catch (error) {
    if (error instanceof BadTree) return { tree: null, fault: error.message };
    throw error;
  }
}

/** The memory of a tree's columns, each once. */
export function buffersOf(tree: Tree): ArrayBufferLike[] {
  const columns = [...Object.values(tree), ...Object.values(tree.diff ?? {}), ...tree.levels];
  return [...new Set(columns.filter(ArrayBuffer.isView).map(({ buffer }) => buffer))];
}
