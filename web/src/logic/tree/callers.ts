/**
 * Who calls a function and what it calls, over all of its frames. In: a tree from the root to the leaves and one of the
 * function's frames. Out: functions with their samples; a sample counts once, however often the one calls the other.
 */
import { isRow } from "./rows.ts";
import { frameName, kindName, moduleName, ROOT, type Tree } from "./tree.ts";

export interface Neighbour {
  name: string;
  module: string;
  kind: string;
  samples: number;
  baseSamples: number;
}

export interface CallersAndCallees {
  /** All samples through the function, and those in itself. */
  total: number;
  self: number;
  baseTotal: number;
  baseSelf: number;
  callers: Neighbour[];
  callees: Neighbour[];
}

/** Adds up by function; frames below one that is counted already are the same samples. */
class Tally {
  private readonly rows = new Map<string, { row: Neighbour; until: number }>();
  private readonly tree: Tree;

  constructor(tree: Tree) {
    this.tree = tree;
  }

  add(neighbour: number, counted: number): void {
    const { tree } = this;
    const key = `${tree.name[neighbour]} ${tree.module[neighbour]} ${tree.kind[neighbour]}`;
    let entry = this.rows.get(key);
    if (entry === undefined) {
      const [name, module, kind] = [frameName(tree, neighbour), moduleName(tree, neighbour), kindName(tree, neighbour)];
      entry = { row: { name, module, kind, samples: 0, baseSamples: 0 }, until: 0 };
      this.rows.set(key, entry);
    }
    if (counted < entry.until) return;
    entry.until = tree.end[counted] as number;
    entry.row.samples += tree.total[counted] as number;
    entry.row.baseSamples += tree.diff?.baseTotal[counted] ?? 0;
  }

  sorted(): Neighbour[] {
    const rows = [...this.rows.values()].map(({ row }) => row);
    return rows.sort((a, b) => b.samples + b.baseSamples - a.samples - a.baseSamples || (a.name < b.name ? -1 : 1));
  }
}

export function callersAndCallees(tree: Tree, node: number): CallersAndCallees {
  const isIt = (i: number) =>
    tree.name[i] === tree.name[node] && tree.module[i] === tree.module[node] && tree.kind[i] === tree.kind[node];
  const [callers, callees] = [new Tally(tree), new Tally(tree)];
  const sum = { total: 0, self: 0, baseTotal: 0, baseSelf: 0 };
  let until = 0;
  for (let i = 1; i < tree.size; i++) {
    const parent = tree.parent[i] as number;
    if (parent !== ROOT && isIt(parent)) callees.add(i, i);
    if (!isIt(i)) continue;
    // Stacks begin below a row.
    if (parent !== ROOT && !isRow(tree, parent)) callers.add(parent, i);
    sum.self += tree.self[i] as number;
    sum.baseSelf += tree.diff?.baseSelf[i] ?? 0;
    if (i < until) continue;
    until = tree.end[i] as number;
    sum.total += tree.total[i] as number;
    sum.baseTotal += tree.diff?.baseTotal[i] ?? 0;
  }
  return { ...sum, callers: callers.sorted(), callees: callees.sorted() };
}
