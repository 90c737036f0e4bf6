/**
 * What changed, in sentences. In: the tree of a difference that the server judged. Out: one finding for each change,
 * the largest first. Frames of one chain are one finding: a caller grew because of what it calls.
 *
 * From the root down, the chain of a change follows the callee that has nearly all of it. Where none has, the mix
 * decides: a frame whose callees take the same shares as before does more of the same, and is the finding itself; one
 * whose mix changed is taken apart into the callees that changed. What changes against its chain, or beside it, is a
 * finding of its own.
 */
import type { Change } from "../colour.ts";
import { fitName } from "../text/names.ts";
import { amountText, SAMPLES } from "../text/unit.ts";
import { isRow, titleOf } from "../tree/rows.ts";
import { type DiffData, frameName, kindName, moduleName, ROOT, type Tree } from "../tree/tree.ts";
import { changeText, factor, fromTo } from "./changeText.ts";
import { judgedUnit, normUnit, type Told } from "./norm.ts";
import { changeWords, type SideNames } from "./sideNames.ts";

export interface Finding {
  node: number;
  change: Change;
  /** Module of the program that it ran in; empty where no frame tells. */
  where: string;
  /** The nearest caller of another name, where the same function is found elsewhere too; else empty. */
  caller: string;
  before: number;
  after: number;
  delta: number;
  low: number;
  high: number;
  beforeSamples: number;
  afterSamples: number;
  /** Callees that changed with it, the largest first. */
  parts: { name: string; delta: number }[];
}

/** A callee with this part of a chain's change continues the chain. */
const NEARLY_ALL = 0.85;
/** One side below this part of the other: what it was made of there says nothing. */
const HARDLY_ANY = 0.15;
/** Up to this part of a change may lie with other callees than the mix makes one expect. */
const SAME_MIX = 0.25;
/** Callees that explain less of a change leave it with their caller. */
const EXPLAINED = 0.5;
const MOST_PARTS = 3;
/** Characters of a name within a sentence. */
const NAME_ROOM = 44;
/** Modules that every program has: they don't tell which one it was. */
const COMMON = /^(libc|libpthread|ld-|ld\.|libm[.-]|libstdc|libgcc|\[vdso\]|vdso)/;

export function findings(tree: Tree, measure: "total" | "self"): Finding[] {
  const { diff } = tree;
  if (diff === null) return [];
  const found = measure === "self" ? ownChanges(tree, diff) : changedChains(tree, diff);
  const twice = namedTwice(tree, found);
  return found
    .map((finding) =>
      twice.has(tree.name[finding.node] as number) ? { ...finding, caller: callerOf(tree, finding.node) } : finding,
    )
    .sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta) || a.node - b.node);
}

function namedTwice(tree: Tree, found: readonly Finding[]): Set<number> {
  const once = new Set<number>();
  const twice = new Set<number>();
  for (const { node } of found) {
    const name = tree.name[node] as number;
    (once.has(name) ? twice : once).add(name);
  }
  return twice;
}

function callerOf(tree: Tree, node: number): string {
  for (let i = tree.parent[node] as number; i > ROOT; i = tree.parent[i] as number) {
    if (tree.name[i] !== tree.name[node]) return titleOf(tree, i);
  }
  return "";
}

function ownChanges(tree: Tree, diff: DiffData): Finding[] {
  const out: Finding[] = [];
  for (let i = 0; i < tree.size; i++) {
    if (signOf(diff, i) !== 0) out.push({ ...findingOf(tree, diff, i, []), ...ownSides(tree, diff, i) });
  }
  return out;
}

function ownSides(tree: Tree, diff: DiffData, node: number) {
  return {
    before: diff.baseSelfNorm[node] as number,
    after: diff.selfNorm[node] as number,
    beforeSamples: diff.baseSelf[node] as number,
    afterSamples: tree.self[node] as number,
  };
}

function changedChains(tree: Tree, diff: DiffData): Finding[] {
  const out: Finding[] = [];
  // Subtrees that are still to be looked at; a stack, since trees may be thousands deep.
  const open = [ROOT];
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const sign = signOf(diff, top);
    if (sign === 0) {
      open.push(...children(tree, top));
      continue;
    }
    const chain = chainFrom(tree, diff, top, sign, open);
    const end = chain[chain.length - 1] as number;
    const below = children(tree, end);
    const same = below.filter((child) => signOf(diff, child) === sign);
    const explained = sum(same.map((child) => deltaOf(diff, child)));
    const isWhole = Math.abs(explained) < EXPLAINED * Math.abs(deltaOf(diff, end)) || isSameMix(tree, diff, end, below);
    if (!isWhole) {
      open.push(...below);
      continue;
    }
    open.push(...below.filter((child) => signOf(diff, child) !== sign));
    out.push(findingOf(tree, diff, outermost(tree, chain), same));
  }
  return out;
}

/** Down from `top` while one callee has nearly all of the chain's change; what lies beside it is left in `open`. */
function chainFrom(tree: Tree, diff: DiffData, top: number, sign: number, open: number[]): number[] {
  const chain = [top];
  // A caller may have less: what else it calls went the other way.
  let whole = size(diff, top);
  for (let node = top; ; ) {
    const below = children(tree, node);
    const next = below.reduce(
      (best, child) =>
        signOf(diff, child) === sign && size(diff, child) > (best < 0 ? 0 : size(diff, best)) ? child : best,
      -1,
    );
    if (next < 0 || size(diff, next) < NEARLY_ALL * whole) return chain;
    whole = Math.max(whole, size(diff, next));
    open.push(...below.filter((child) => child !== next));
    chain.push(next);
    node = next;
  }
}

/** A recursion is named by its outermost frame. */
function outermost(tree: Tree, chain: readonly number[]): number {
  const end = chain[chain.length - 1] as number;
  const is = (node: number) => tree.name[node] === tree.name[end] && tree.module[node] === tree.module[end];
  return chain.find(is) as number;
}

/**
 * Whether the change is spread over the callees (and the frame's own time) as the smaller side's time is, but for what
 * chance explains: then the frame does more, or less, of the same.
 */
function isSameMix(tree: Tree, diff: DiffData, node: number, below: readonly number[]): boolean {
  const before = diff.baseNorm[node] as number;
  const after = diff.norm[node] as number;
  const smaller = Math.min(before, after);
  if (smaller <= HARDLY_ANY * Math.max(before, after)) return true;
  const change = Math.abs(after - before);
  // What one sample stands for.
  const [one, other] = [
    before / Math.max(1, diff.baseTotal[node] as number),
    after / Math.max(1, tree.total[node] as number),
  ];
  let differ = 0;
  let chance = 0;
  const add = (a: number, b: number) => {
    const share = (before < after ? a : b) / smaller;
    differ += Math.abs(b - a - share * (after - before)) / 2;
    // The mean deviation of the difference of two counts.
    chance += Math.sqrt((2 / Math.PI) * (a * one + b * other)) / 2;
  };
  for (const child of below) add(diff.baseNorm[child] as number, diff.norm[child] as number);
  add(diff.baseSelfNorm[node] as number, diff.selfNorm[node] as number);
  return differ - chance < SAME_MIX * change;
}

function findingOf(tree: Tree, diff: DiffData, node: number, same: readonly number[]): Finding {
  // A function that calls itself says nothing about what it is made of.
  const others = same.filter((child) => tree.name[child] !== tree.name[node]);
  const parts = others.sort((a, b) => size(diff, b) - size(diff, a)).slice(0, MOST_PARTS);
  return {
    node,
    change: diff.states[diff.state[node] as number] as Change,
    where: programOf(tree, node),
    caller: "",
    before: diff.baseNorm[node] as number,
    after: diff.norm[node] as number,
    delta: deltaOf(diff, node),
    low: diff.low[node] as number,
    high: diff.high[node] as number,
    beforeSamples: diff.baseTotal[node] as number,
    afterSamples: tree.total[node] as number,
    parts: parts.map((child) => ({ name: titleOf(tree, child), delta: deltaOf(diff, child) })),
  };
}

/** The nearest frame, itself or a caller, whose module tells the program. */
function programOf(tree: Tree, node: number): string {
  for (let i = node; i > ROOT; i = tree.parent[i] as number) {
    const module = moduleName(tree, i);
    if (module !== "" && kindName(tree, i) !== "kernel" && !isRow(tree, i) && !COMMON.test(module)) return module;
  }
  return node > ROOT && kindName(tree, node) === "kernel" ? "the kernel" : "";
}

function children(tree: Tree, node: number): number[] {
  const out: number[] = [];
  for (let i = node + 1; i < (tree.end[node] as number); i = tree.end[i] as number) out.push(i);
  return out;
}

function deltaOf(diff: DiffData, node: number): number {
  return diff.delta[node] as number;
}

function size(diff: DiffData, node: number): number {
  return Math.abs(deltaOf(diff, node));
}

/** 0: not shown to differ. */
function signOf(diff: DiffData, node: number): number {
  return diff.states[diff.state[node] as number] === "same" ? 0 : Math.sign(deltaOf(diff, node));
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

export interface Telling extends Told {
  measure: "total" | "self";
  sides: SideNames;
  /** Cores of each side, where there are cores: told beside shares. */
  sideCores?: readonly [number, number] | null;
  /** When window A ends and B begins, as clock times. */
  windows: { baseUntil: string; from: string };
}

/** `kubelet: 0.05 → 0.62 cores (+0.57, between +0.51 and +0.63), 12.4×`: what stands behind the frame's name. */
export function figuresOf(finding: Finding, telling: Telling): string {
  const { normalize, sides, sideCores = null } = telling;
  const { before, after, delta, low, high } = finding;
  const times = finding.change === "new" || finding.change === "gone" ? "" : factor(before, after);
  const interval = `between ${changeText(low, telling)} and ${changeText(high, telling)}`;
  const { inTurn } = sides;
  const levels = fromTo(before, after, telling, inTurn);
  const [ofA, ofB] = sideCores ?? [0, 0];
  const isShare = normalize === "share" && normUnit(telling) === judgedUnit(telling);
  const rates = { ...telling, normalize: "rate", choice: "" } as const;
  const amounts = isShare && sideCores !== null ? `, ${fromTo(before * ofA, after * ofB, rates, inTurn)}` : "";
  return `${levels} (${changeText(delta, telling)}, ${interval})${amounts}${times === "" ? "" : `, ${times}`}`;
}

/** The rest of the sentence: since when, of how many samples, and what it is made of. */
export function remarkOf(finding: Finding, telling: Telling): string {
  const { change, caller, beforeSamples, afterSamples, parts } = finding;
  const said: string[] = caller === "" ? [] : [`called by ${fitName(caller, NAME_ROOM)}`];
  const { sides, windows, unit = SAMPLES } = telling;
  const [a, b] = sides.names.map((name) => (sides.inTurn ? name : `in ${name}`));
  if (change !== "new" && change !== "gone")
    said.push(`${amountText(beforeSamples, unit)} ${a}, ${amountText(afterSamples, unit)} ${b}`);
  else {
    if (!sides.inTurn) said.push(changeWords(sides, change));
    else if (change === "new") said.push(`new: not a sample in A, seen since ${windows.from}`);
    else said.push(`gone: not seen in B, last in A until ${windows.baseUntil}`);
    said.push(amountText(Math.max(beforeSamples, afterSamples), unit));
  }
  if (parts.length > 0) {
    const list = parts.map(({ name, delta }) => `${fitName(name, NAME_ROOM)} (${changeText(delta, telling)})`);
    said.push(`with ${list.join(", ")}`);
  }
  return said.join("; ");
}

/** A finding's name as a person says it. */
export function nameOf(tree: Tree, finding: Finding): string {
  if (finding.node === ROOT) return "Everything that is selected";
  return isRow(tree, finding.node) ? `Everything of ${titleOf(tree, finding.node)}` : frameName(tree, finding.node);
}
