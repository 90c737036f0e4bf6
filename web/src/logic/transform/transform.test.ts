import { describe, expect, it } from "vitest";
import { answerOf, diffOf, type Frame } from "../fixtures.ts";
import { ancestors, diffTreeOf, frameName, kindName, moduleName, ROOT, type Tree, treeOf } from "../tree/tree.ts";
import { type Transform, transformsOf, transformsText, withTransform } from "./list.ts";
import { transformed } from "./transform.ts";

/** Stacks as text, root first, with what each has itself of every measure: the ground truth of a tree. */
type Stacks = Map<string, number[]>;

interface Stack {
  frames: { name: string; module: string }[];
  own: number[];
}

function stacksOf(tree: Tree, from = 0, until = tree.size): Stack[] {
  return [...tree.parent.keys()]
    .slice(from, until)
    .map((node) => ({
      frames: ancestors(tree, node).map((i) => ({ name: frameName(tree, i), module: moduleName(tree, i) })),
      own: [tree.self[node] as number, ...(tree.diff === null ? [] : [tree.diff.baseSelf[node] as number])],
    }))
    .filter(({ own }) => own.some((samples) => samples > 0));
}

function summed(stacks: Stack[]): Stacks {
  const sums: Stacks = new Map();
  for (const { frames, own } of stacks) {
    const path = frames.map(({ name, module }) => `${name}@${module}`).join(";");
    sums.set(
      path,
      (sums.get(path) ?? own.map(() => 0)).map((sum, m) => sum + (own[m] as number)),
    );
  }
  return new Map([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** What a transform means, said with lists of names instead of trees. */
function naive(stacks: Stack[], { op, name }: Transform): Stack[] {
  return stacks.flatMap(({ frames, own }) => {
    const at = frames.findIndex((frame) => frame.name === name);
    if (op === "focus") return at < 0 ? [] : [{ frames: frames.slice(at), own }];
    if (op === "hide") return [{ frames: frames.filter((frame) => frame.name !== name), own }];
    if (op === "invert") return [{ frames: [...frames].reverse(), own }];
    const key = (frame: Stack["frames"][number]) =>
      op === "merge" ? `${frame.name}@${frame.module}` : frame.module === name ? name : null;
    const kept = frames.filter(
      (frame, i) => i === 0 || key(frame) === null || key(frame) !== key(frames[i - 1] as never),
    );
    if (op === "merge") return [{ frames: kept, own }];
    return [{ frames: kept.map((frame) => (frame.module === name ? { name, module: name } : frame)), own }];
  });
}

/** Totals are sums of what lies below, and every frame lies within its caller. */
function checkSums(tree: Tree): void {
  const sums = Float64Array.from(tree.self);
  const baseSums = Float64Array.from(tree.diff?.baseSelf ?? []);
  let misplaced = 0;
  for (let i = tree.size - 1; i > 0; i--) {
    const p = tree.parent[i] as number;
    if (p >= i || (tree.start[i] as number) < (tree.start[p] as number) - 1e-9) misplaced++;
    if (p === ROOT && i >= tree.callersFrom) continue;
    sums[p] = (sums[p] as number) + (sums[i] as number);
    if (tree.diff !== null) baseSums[p] = (baseSums[p] as number) + (baseSums[i] as number);
  }
  expect(misplaced).toBe(0);
  expect(isEqual(tree.total, sums)).toBe(true);
  if (tree.diff === null) return;
  expect(isEqual(tree.diff.baseTotal, baseSums)).toBe(true);
  // The fixture's unit is samples.
  expect(isEqual(tree.diff.norm, sums)).toBe(true);
  expect(isEqual(tree.diff.baseNorm, baseSums)).toBe(true);
  expect(
    isEqual(
      tree.diff.delta,
      sums.map((after, i) => after - (baseSums[i] as number)),
    ),
  ).toBe(true);
}

function isEqual(a: Float64Array, b: Float64Array): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}

function randomFrames(seed: number, depth = 5): Frame[] {
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const make = (left: number): Frame[] => {
    const names = new Map<string, Frame>();
    for (let i = random(4); i >= 0; i--) {
      const name = "abcdef"[random(6)] as string;
      const module = `lib${"abcdef".indexOf(name) % 3}.so`;
      names.set(name, { name, module, self: random(5), before: random(5), calls: left > 0 ? make(left - 1) : [] });
    }
    return [...names.values()];
  };
  return make(depth);
}

const LISTS: Transform[][] = [
  [{ op: "focus", name: "b" }],
  [{ op: "hide", name: "a" }],
  [{ op: "merge", name: "" }],
  [{ op: "collapse", name: "lib1.so" }],
  [{ op: "invert", name: "" }],
  [
    { op: "hide", name: "c" },
    { op: "merge", name: "" },
    { op: "focus", name: "d" },
    { op: "collapse", name: "lib2.so" },
    { op: "invert", name: "" },
    { op: "hide", name: "a" },
  ],
];

describe.each([1, 2, 3])("transforms of random tree %i", (seed) => {
  const frames = randomFrames(seed);
  const trees: [string, Tree][] = [
    ["one window", treeOf(answerOf(frames))],
    ["a difference", diffTreeOf(diffOf(frames), "both")],
  ];
  it.each(trees)("do to the tree of %s what they do to each stack", (_, tree) => {
    for (const list of LISTS) {
      const { tree: changed, missing } = transformed(tree, list);
      expect(missing).toEqual([]);
      const wanted = list.reduce(naive, stacksOf(tree));
      expect(summed(stacksOf(changed)), transformsText(list)).toEqual(summed(wanted));
      checkSums(changed);
    }
  });

  it.each(trees)("show a function of %s between its callers and its callees", (_, tree) => {
    const { tree: shown, upright } = transformed(tree, [{ op: "sandwich", name: "e" }]);
    expect(upright).toBe(tree);
    expect(frameName(shown, ROOT)).toBe("e");
    checkSums(shown);
    const of = (list: Stack[]) =>
      list.flatMap(({ frames: all, own }) => {
        const at = all.findIndex(({ name }) => name === "e");
        return at < 0 ? [] : [{ below: all.slice(at + 1), above: all.slice(0, at).reverse(), own }];
      });
    const wanted = of(stacksOf(tree));
    const part = (from: number, until: number) => stacksOf(shown, from, until);
    expect(summed(part(0, shown.callersFrom))).toEqual(
      summed(wanted.map(({ below, own }) => ({ frames: below, own }))),
    );
    const callers = wanted.filter(({ above }) => above.length > 0).map(({ above, own }) => ({ frames: above, own }));
    expect(summed(part(shown.callersFrom, shown.size))).toEqual(summed(callers));
    for (let i = 1; i < shown.size; i += 7) {
      const step = i < shown.callersFrom ? 1 : -1;
      expect(shown.depth[i]).toBe((shown.depth[shown.parent[i] as number] as number) + step);
    }
  });
});

describe("transforms", () => {
  const tree = treeOf(
    answerOf([{ name: "main", calls: [{ name: "read", self: 3, calls: [{ name: "copy", self: 2 }] }] }]),
  );

  it("go through the address unchanged", () => {
    const list: Transform[] = [
      { op: "hide", name: "operator;(a\\b):c" },
      { op: "merge", name: "" },
      { op: "sandwich", name: "std::read<x>" },
    ];
    expect(transformsOf(transformsText(list))).toEqual(list);
    expect(transformsOf("explode:x;hide;merge:now;invert")).toEqual([{ op: "invert", name: "" }]);
  });

  it("are left out, and said to be, where the function does not occur", () => {
    const { tree: shown, missing } = transformed(tree, [{ op: "focus", name: "nowhere" }]);
    expect(shown).toBe(tree);
    expect(missing).toEqual([{ op: "focus", name: "nowhere" }]);
  });

  it("are switched off by being chosen again where they name nothing, and there is one sandwich", () => {
    const merge: Transform = { op: "merge", name: "" };
    expect(withTransform(withTransform([], merge), merge)).toEqual([]);
    const one = withTransform([], { op: "sandwich", name: "a" });
    expect(withTransform(one, { op: "sandwich", name: "b" })).toEqual([{ op: "sandwich", name: "b" }]);
  });

  it("keep the server's verdict where a frame keeps its samples, and judge like the server where it does not", () => {
    const answer = diffOf([
      { name: "p", calls: [{ name: "x", self: 500, before: 100 }] },
      { name: "q", calls: [{ name: "x", self: 400, before: 150 }] },
      { name: "r", self: 10, before: 660 },
    ]);
    const { tree: shown } = transformed(diffTreeOf(answer, "both"), [{ op: "invert", name: "" }]);
    const node = [...shown.parent.keys()].find((i) => frameName(shown, i) === "x") as number;
    const state = (i: number) => shown.diff?.states[shown.diff.state[i] as number];
    expect([shown.diff?.baseTotal[node], shown.total[node]]).toEqual([250, 900]);
    expect(state(node)).toBe("grew");
    expect(shown.diff?.low[node]).toBeGreaterThan(500);
    expect(shown.diff?.high[node]).toBeLessThan(800);
    const untouched = [...shown.parent.keys()].find((i) => frameName(shown, i) === "r") as number;
    expect(state(untouched)).toBe("shrank");
  });

  it("judge what a frame itself has where that is compared", () => {
    // `main` is in all samples, of which there are about as many on both sides; its own went to what it calls.
    const answer = diffOf(
      [
        {
          name: "main",
          self: 100,
          before: 800,
          calls: [
            { name: "fast", self: 800, before: 100 },
            { name: "slow", self: 100, before: 100 },
            { name: "rare", self: 60, before: 30 },
          ],
        },
      ],
      "self",
    );
    const sent = diffTreeOf(answer, "both");
    const state = (of: Tree, name: string) => {
      const node = [...of.parent.keys()].find((i) => frameName(of, i) === name) as number;
      return [of.diff?.states[of.diff.state[node] as number], of.diff?.delta[node]];
    };
    // With `slow` gone, its samples are the caller's own: 200 where there were 900.
    const { tree: without } = transformed(sent, [{ op: "hide", name: "slow" }]);
    expect(state(without, "main")).toEqual(["shrank", -700]);
    expect(state(without, "fast")).toEqual(["grew", 700]);
    // Turned round, what ends in a function is all that its frame has; what merely calls it is judged by that too.
    const { tree: turned } = transformed(sent, [{ op: "invert", name: "" }]);
    expect(state(turned, "fast")).toEqual(["grew", 700]);
    expect(state(turned, "slow")).toEqual(["same", 0]);
    expect(state(turned, "main")).toEqual(["grew", 700]);
    const { tree: between } = transformed(sent, [{ op: "sandwich", name: "fast" }]);
    expect(between.diff?.delta[ROOT]).toBe(700);
    expect(between.diff?.delta[between.callersFrom]).toBe(700);
  });

  it("put folded frames of one caller together and count them", () => {
    const folded = treeOf(
      answerOf([
        {
          name: "a",
          calls: [
            { name: "b", calls: [{ name: "2 frames below the threshold", kind: "trimmed", self: 2 }] },
            { name: "3 frames below the threshold", kind: "trimmed", self: 3 },
          ],
        },
      ]),
    );
    const { tree: shown } = transformed(folded, [{ op: "hide", name: "b" }]);
    expect([...shown.parent.keys()].map((i) => frameName(shown, i))).toEqual([
      "all",
      "a",
      "5 frames below the threshold",
    ]);
    expect([...shown.total]).toEqual([5, 5, 5]);
    expect(shown.trimmed).toBe(true);
  });

  it("stay exact, and bounded, where inverting makes more ways than there are frames", () => {
    // A caller's caller of each: 100 functions nested, each with samples of its own, have 5,050 ways up.
    let frames: Frame[] = [];
    for (let i = 99; i >= 0; i--) frames = [{ name: `f${i}`, self: 1, calls: frames }];
    const deep = treeOf(answerOf(frames));
    expect(transformed(deep, [{ op: "invert", name: "" }]).tree.size).toBe(5051);
    const { tree: shown } = transformed(deep, [{ op: "invert", name: "" }], 500);
    expect(shown.total[ROOT]).toBe(100);
    // One level may overshoot, each of its ways then ends in a folded node.
    expect(shown.size).toBeLessThan(4 * 500 + 200);
    expect(shown.trimmed).toBe(true);
    checkSums(shown);
  });
});

describe("transforms below rows of labels", () => {
  const row = (label: string, name: string, calls: Frame[], self = 0): Frame => ({
    name,
    module: label,
    kind: "label",
    self,
    before: self,
    calls,
  });
  const stacks = (own: number): Frame[] => [
    {
      name: "main",
      module: "m",
      self: own,
      before: 1,
      calls: [
        { name: "walk", module: "m", self: 5 * own, before: 7, calls: [{ name: "walk", module: "m", self: own }] },
        { name: "read", module: "libc", self: 2, before: 3 },
      ],
    },
    // A function that is called as a label, and one as its value.
    { name: "a", module: "service", self: 3, before: 3 },
  ];
  const services = { a: stacks(1), b: stacks(4), "": [{ name: "idle", self: 6, before: 6 }] };
  const grouped = Object.entries(services).map(([name, calls]) => row("service", name, calls, name === "a" ? 2 : 0));

  /** Rows of a tree, each with the tree below it as stacks. */
  function below(tree: Tree): Map<string, Stacks> {
    const rows = new Map<string, Stacks>();
    for (let i = 1; i < tree.size; i = tree.end[i] as number) {
      expect(kindName(tree, i)).toBe("label");
      const inner = stacksOf(tree, i, tree.end[i] as number).map(({ frames, own }) => ({
        frames: frames.slice(1),
        own,
      }));
      rows.set(frameName(tree, i), summed(inner));
    }
    return rows;
  }

  const LISTS: Transform[][] = [
    [{ op: "focus", name: "walk" }],
    [{ op: "hide", name: "walk" }],
    [{ op: "hide", name: "a" }],
    [{ op: "collapse", name: "m" }],
    [{ op: "collapse", name: "service" }],
    [{ op: "merge", name: "" }],
    [{ op: "invert", name: "" }],
    [
      { op: "focus", name: "walk" },
      { op: "invert", name: "" },
    ],
  ];

  it.each(LISTS.map((list) => [transformsText(list), list] as const))("%s is done to each row's stacks", (_, list) => {
    for (const isDiff of [false, true]) {
      const make = (calls: Frame[]) => (isDiff ? diffTreeOf(diffOf(calls), "both") : treeOf(answerOf(calls)));
      const whole = transformed(make(grouped), list).tree;
      checkSums(whole);
      const found = below(whole);
      for (const { name, calls = [], self = 0 } of grouped) {
        const alone = summed(
          list.reduce((all, one) => all.flatMap((stack) => naive([stack], one)), stacksOf(make(calls))),
        );
        // Samples without any frame are not gone through by a function.
        const bare = list[0]?.op === "focus" ? 0 : self;
        if (bare > 0)
          alone.set(
            "",
            (alone.get("") ?? (isDiff ? [0, 0] : [0])).map((sum) => sum + bare),
          );
        const expected = new Map([...alone].sort(([a], [b]) => (a < b ? -1 : 1)));
        expect(found.get(name) ?? new Map(), name).toEqual(expected);
      }
    }
  });

  it("a sandwich has the rows as the outermost callers", () => {
    const { tree } = transformed(treeOf(answerOf(grouped)), [{ op: "sandwich", name: "walk" }]);
    checkSums(tree);
    const outermost = [...tree.parent.keys()].filter(
      (i) => i >= tree.callersFrom && tree.end[i] === i + 1 && kindName(tree, i) === "label",
    );
    expect(outermost.map((i) => [frameName(tree, i), tree.total[i]])).toEqual([
      ["b", 24],
      ["a", 6],
    ]);
    expect(tree.total[ROOT]).toBe(30);
  });

  it("nothing is done to a row that is called as a function is", () => {
    const list: Transform[] = [{ op: "hide", name: "b" }];
    expect(transformed(treeOf(answerOf(grouped)), list).missing).toEqual(list);
  });
});
