import { describe, expect, it } from "vitest";
import { answerOf } from "../fixtures.ts";
import { rowKey } from "./frameKey.ts";
import { matchOf } from "./frameMatch.ts";
import { kindsOf, largestOf } from "./functions.ts";
import { kindName, treeOf } from "./tree.ts";

describe("the kind of a frame", () => {
  const tree = treeOf(
    answerOf([
      { name: "main", self: 1 },
      { name: "run", kind: "interpreted", self: 1 },
      { name: "run", kind: "jvm", self: 2 },
      { name: "run", kind: "cpython", self: 3 },
    ]),
  );

  it("is its language, where the server tells one beside the kind", () => {
    expect([1, 2, 3, 4].map((node) => kindName(tree, node))).toEqual(["native", "interpreted", "jvm", "cpython"]);
    expect(kindsOf(tree).map(({ kind }) => kind)).toEqual(["native", "interpreted", "jvm", "cpython"]);
  });

  it("tells functions of two languages apart, in tables and for the server", () => {
    const row = { name: "run", module: "", kind: "interpreted" };
    const keys = ["", "jvm", "cpython"].map((language) => rowKey({ ...row, language }));
    expect(keys.map((key) => largestOf(tree, key))).toEqual([2, 3, 4]);
    expect(keys.map(matchOf)).toEqual(
      ["interpreted", "jvm", "cpython"].map((kind) => ({ match_frame: `${kind},,run` })),
    );
    expect(rowKey({ name: "a service" })).toEqual({ name: "a service", module: "", kind: "" });
  });
});
