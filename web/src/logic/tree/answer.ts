/**
 * An answer with its tree, parsed. In: the server's JSON. Out: everything of the answer but the columns, and the tree
 * that they describe, or what is wrong with them. Of a million frames this takes a third of a second: it may run
 * anywhere, what comes out can be handed over without copies.
 */
import type { DiffAnswer, FlamegraphAnswer, TreeColumns } from "../../api/types.ts";
import { withoutOneRow } from "./rows.ts";
import { BadTree, diffTreeOf, type Tree, treeOf } from "./tree.ts";

/** What a tree is made of, and gone with it. */
type Columns = { strings: string[]; kinds: string[]; languages: string[]; nodes: TreeColumns };

export type Parsed<Answer extends Columns> = Omit<Answer, keyof Columns> & { tree: Tree | null; fault: string };

export type ParsedFlamegraph = Parsed<FlamegraphAnswer>;
export type ParsedDiff = Parsed<DiffAnswer>;

/** What each answer becomes. */
export interface ParsedAnswers {
  flamegraph: ParsedFlamegraph;
  diff: ParsedDiff;
}

export type Kind = keyof ParsedAnswers;

/** Throws where the text is no JSON. `ownRows`: nobody asked for the rows of labels, so that one alone is left out. */
export function parseAnswer<K extends Kind>(kind: K, text: string, ownRows = false): ParsedAnswers[K] {
  const answer: unknown = JSON.parse(text);
  const parsed =
    kind === "diff" ? parseDiff(answer as DiffAnswer) : parseFlamegraph(answer as FlamegraphAnswer, ownRows);
  return parsed as ParsedAnswers[K];
}

function parseFlamegraph(answer: FlamegraphAnswer, ownRows: boolean): ParsedFlamegraph {
  const { strings: _, kinds, languages: __, nodes, ...rest } = answer;
  return { ...rest, ...sound(() => treeOf(ownRows ? { ...answer, nodes: withoutOneRow(nodes, kinds) } : answer)) };
}

function parseDiff(answer: DiffAnswer): ParsedDiff {
  const { strings: _, kinds: __, languages: ___, nodes: ____, ...rest } = answer;
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
