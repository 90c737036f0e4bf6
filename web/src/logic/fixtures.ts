/** Small trees and answers that the unit tests build by hand. Used by tests only. */
import type { DiffAnswer, FlamegraphAnswer, SeriesAnswer } from "../api/types.ts";
import { type Stack, stackOf } from "./series/stack.ts";
import { treeOf } from "./tree/tree.ts";

export interface Frame {
  name: string;
  self?: number;
  before?: number;
  module?: string;
  kind?: string;
  calls?: Frame[];
}

const KINDS = ["root", "kernel", "native", "interpreted", "jit", "unknown", "trimmed", "label"];
const LANGUAGES = ["jvm", "cpython", "v8js"];
/** As the server does: kinds, then languages, each of which is `interpreted`. */
const KIND_NAMES = [...KINDS, ...LANGUAGES.map(() => "interpreted")];
const LANGUAGE_NAMES = [...KINDS.map(() => ""), ...LANGUAGES];

/** Three thousand frames in a row, most of them slivers; the same ones each time. */
export function unevenTree(seed = 7) {
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const calls: Frame[] = [];
  for (let i = 0; i < 3000; i++) calls.push({ name: `f${i}`, self: Math.floor(random() ** 8 * 5000) });
  return { random, tree: treeOf(answerOf(calls)) };
}

/** An answer in the server's shape: pre-order, totals summed up from what each frame has itself. */
export function answerOf(calls: Frame[]): FlamegraphAnswer {
  const strings = ["", "all"];
  const ids = new Map(strings.map((text, i) => [text, i]));
  const id = (text: string) => {
    const known = ids.get(text) ?? strings.push(text) - 1;
    ids.set(text, known);
    return known;
  };
  const nodes = { parent: [-1], name: [1], module: [0], kind: [0], inlined: [0], total: [0], self: [0] };
  const add = (frame: Frame, parent: number): number => {
    const i = nodes.parent.push(parent) - 1;
    nodes.name.push(id(frame.name));
    nodes.module.push(id(frame.module ?? ""));
    nodes.kind.push([...KINDS, ...LANGUAGES].indexOf(frame.kind ?? "native"));
    nodes.inlined.push(0);
    nodes.self.push(frame.self ?? 0);
    nodes.total.push(0);
    nodes.total[i] = (frame.calls ?? []).reduce((sum, call) => sum + add(call, i), frame.self ?? 0);
    return nodes.total[i] as number;
  };
  nodes.total[0] = calls.reduce((sum, call) => sum + add(call, 0), 0);
  const samples = nodes.total[0];
  return {
    type: "cpu",
    query: "{}",
    from: 0,
    until: 10_000,
    unit: "samples",
    period_ns: 50_000_000,
    samples,
    cpu_seconds: samples / 20,
    cores: samples / 200,
    periods: [{ period_ns: 50_000_000, samples }],
    exposure: { observed_cpu_seconds: 20, idle_share: 0.5, gaps: [], nodes: 1 },
    quality: { complete_samples: samples, truncated_samples: 0, unnamed_samples: 0, lost: {} },
    match: null,
    strings,
    kinds: KIND_NAMES,
    languages: LANGUAGE_NAMES,
    nodes,
  };
}

/**
 * A difference whose sides are `before` and `self` of each frame, as samples; whatever differs at all is judged to
 * differ.
 */
export function diffOf(calls: Frame[], measure: "total" | "self" = "total"): DiffAnswer {
  const after = answerOf(calls);
  const swap = (frames: Frame[]): Frame[] =>
    frames.map((frame) => ({ ...frame, self: frame.before ?? 0, calls: swap(frame.calls ?? []) }));
  const base = answerOf(swap(calls));
  const zero = after.nodes.parent.map(() => 0);
  const [earlier, later] = [base.nodes[measure], after.nodes[measure]];
  const state = later.map((now, i) => {
    const then = earlier[i] as number;
    return now === then ? 0 : then === 0 ? 3 : now === 0 ? 4 : now > then ? 1 : 2;
  });
  const side = {
    query: "{}",
    from: 0,
    until: 1,
    cores: 0,
    cpu_seconds: 0,
    periods: after.periods,
    exposure: after.exposure,
    quality: after.quality,
  };
  return {
    type: "cpu",
    normalize: "absolute",
    measure,
    confidence: 0.95,
    unit: "samples",
    period_ns: 50_000_000,
    base: { ...side, samples: base.samples },
    comparison: { ...side, samples: after.samples },
    dispersion: 1,
    tested: 0,
    significant: 0,
    false_discovery_rate: 0.05,
    strings: after.strings,
    kinds: after.kinds,
    languages: after.languages,
    states: ["same", "grew", "shrank", "new", "gone"],
    nodes: {
      ...after.nodes,
      base_total: base.nodes.total,
      base_self: base.nodes.self,
      base_norm: base.nodes.total,
      norm: after.nodes.total,
      delta: later.map((now, i) => now - (earlier[i] as number)),
      low: zero,
      high: zero,
      base_self_norm: base.nodes.self,
      self_norm: after.nodes.self,
      state,
      strength: state.map((s) => (s === 0 ? 0 : 1)),
    },
  };
}

export function seriesOf(part: Partial<SeriesAnswer>): SeriesAnswer {
  return {
    from: 0,
    until: 30_000,
    step_ms: 10_000,
    by: "service",
    unit: "cores",
    times: [0, 10_000, 20_000],
    covered: [1, 1, 1],
    idle: [1, 1, 1],
    capacity: [4, 4, 4],
    series: [],
    other: null,
    ...part,
  };
}

/** Cores second by second, null where nobody watched; a sample stands for 50 ms, or as `hertz` says. */
export function courseStack(cores: (number | null)[], hertz = 20, from = 0): Stack {
  const seconds = cores.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  return stackOf(
    seriesOf({
      from,
      until: from + cores.length * 1000,
      step_ms: 1000,
      times: cores.map((_, i) => from + i * 1000),
      covered: cores.map((value) => (value === null ? 0 : 1)),
      idle: cores.map(() => null),
      capacity: cores.map((value) => (value === null ? null : 4)),
      series: [{ value: "a", cores, samples: Math.round(seconds * hertz), cpu_seconds: seconds }],
    }),
  );
}
