import { describe, expect, it } from "vitest";
import { answerOf, diffOf, type Frame } from "../fixtures.ts";
import { Letters, matcherOf, namesOf, search } from "../flame/search.ts";
import { functionsLike } from "../graph/functionsLike.ts";
import { modulesOf, rowLabels } from "../graph/key.ts";
import { functionsOf } from "../table/functionRows.ts";
import { parseAnswer } from "./answer.ts";
import { callersAndCallees } from "./callers.ts";
import { findFocus, focusOf } from "./focus.ts";
import { pathMatchOf } from "./frameMatch.ts";
import { isRow, rowMatchers, titleOf } from "./rows.ts";
import { frameName, ROOT, type Tree, treeOf } from "./tree.ts";

const row = (label: string, name: string, calls: Frame[], self = 0): Frame => ({
  name,
  module: label,
  kind: "label",
  self,
  calls,
});
const main = (walk: number, rest: number): Frame => ({
  name: "main",
  module: "prog",
  calls: [
    { name: "walk", module: "prog", self: walk },
    { name: "rest", module: "libc", self: rest },
  ],
});
/** The service `walk` is called like a function, and one has no name. */
const GROUPED = [
  row("service", "", [row("process", "cron", [main(1, 2)])]),
  row("service", "walk", [row("process", "a", [main(30, 10)]), row("process", "b", [main(5, 0)], 4)]),
];
const tree = treeOf(answerOf(GROUPED));
const bare = treeOf(answerOf([main(36, 12)]));
const nodes = (of: Tree, name: string) => [...of.name.keys()].filter((i) => frameName(of, i) === name);

describe("rows of labels in a tree", () => {
  it("are told by label and value", () => {
    expect(rowLabels(tree)).toEqual(["service", "process"]);
    expect(rowLabels(bare)).toEqual([]);
    const titles = [...tree.name.keys()].filter((i) => isRow(tree, i)).map((i) => titleOf(tree, i));
    expect(titles).toEqual(["no service", "process cron", "service walk", "process a", "process b"]);
  });

  it("say whose samples stand below them", () => {
    const [, leaf] = nodes(tree, "rest");
    expect(rowMatchers(tree, leaf as number)).toEqual([
      { label: "service", operator: "=", value: "walk" },
      { label: "process", operator: "=", value: "a" },
    ]);
    expect(rowMatchers(bare, 1)).toEqual([]);
  });

  it("are no functions: in tables, lists of modules, words and searches", () => {
    const whole = (of: Tree) => functionsOf(of, ROOT).map(({ name, self, total }) => [name, self, total]);
    // Samples without any frame are the row's own, and no function's.
    expect(whole(tree).sort()).toEqual(whole(bare).sort());
    expect(modulesOf(tree)).toEqual(modulesOf(bare));
    expect(functionsLike(tree, "c", 9)).toEqual([]);
    const wanted = matcherOf("walk") as { matcher: (name: string) => boolean; plain: string };
    const flags = new Letters(tree.strings, namesOf(tree)).matches(wanted);
    expect(search(tree, flags, ROOT)).toMatchObject({ frames: 3, samples: 36 });
  });

  it("are nobody's callers, and no part of a frame's place", () => {
    const [at] = nodes(tree, "main");
    const found = callersAndCallees(tree, at as number);
    expect(found.callers).toEqual([]);
    expect(found.callees.map(({ name, samples }) => [name, samples])).toEqual([
      ["walk", 36],
      ["rest", 12],
    ]);
    const [walk] = nodes(tree, "walk").filter((i) => !isRow(tree, i));
    expect(pathMatchOf(tree, walk as number)).toEqual({ match_path: "native,prog,main;native,prog,walk" });
  });

  it("stand in paths, also where they have no value or a function's name", () => {
    for (let i = 0; i < tree.size; i++) expect(findFocus(tree, focusOf(tree, i))).toBe(i);
    expect(findFocus(tree, "walk")).toBe(nodes(tree, "walk").find((i) => !isRow(tree, i) && tree.self[i] === 30));
  });

  it("may come, go and change: the way below them leads to the largest frame", () => {
    const largest = nodes(tree, "rest").find((i) => tree.self[i] === 10) as number;
    expect(findFocus(tree, "main;rest")).toBe(largest);
    expect(findFocus(tree, "node=a;main;rest")).toBe(largest);
    expect(findFocus(bare, focusOf(tree, largest))).toBe(nodes(bare, "rest")[0]);
    expect(findFocus(bare, "service=walk")).toBeNull();
    expect(findFocus(tree, "main;gone")).toBeNull();
  });

  it("leave out the one that the page chose where all samples have the same value", () => {
    const alone = answerOf([row("service", "api", [main(3, 4)], 2)]);
    const shown = (own: boolean) => parseAnswer("flamegraph", JSON.stringify(alone), own).tree as Tree;
    expect(rowLabels(shown(false))).toEqual(["service"]);
    const left = shown(true);
    expect([...left.name.keys()].map((i) => frameName(left, i))).toEqual(["all", "main", "walk", "rest"]);
    expect([...left.parent]).toEqual([-1, 0, 1, 1]);
    expect([...left.total]).toEqual([9, 7, 3, 4]);
    expect([...left.self]).toEqual([2, 0, 3, 4]);
    const two = answerOf(GROUPED);
    expect(rowLabels(parseAnswer("flamegraph", JSON.stringify(two), true).tree as Tree)).toEqual([
      "service",
      "process",
    ]);
    // A broken answer is told as one, rows or not.
    const broken = { ...alone, nodes: { ...alone.nodes, kind: undefined } };
    expect(parseAnswer("flamegraph", JSON.stringify(broken), true).fault).toContain("kind");
    expect(diffOf(GROUPED).kinds).toContain("label");
  });
});
