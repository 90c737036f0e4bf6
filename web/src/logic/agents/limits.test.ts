import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { LIMIT_WORDS, limitsOf } from "./limits.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");

/** The text of a file or of all Rust files below a folder, from the root of the repository; tests apart. */
function sourceOf(path: string): string {
  const root = fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
  if (!path.endsWith("/")) return readFileSync(root, "utf8");
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".rs") && !/tests?\.rs$/.test(name))
    .map((name) => readFileSync(`${root}${name}`, "utf8"))
    .join("\n");
}

const names = (text: string, pattern: RegExp) =>
  [...new Set([...text.matchAll(pattern)].map(([, name]) => name))].sort();

/** What the agent puts into the limits of its report: lists of names, each with its count. */
function reportedNames(): unknown[] {
  const source = sourceOf("agent/src/agent/");
  const written = source.matchAll(/(?:let (?:all|left_out) = |u64\); \d+\] \{\s+)\[(.*?)\n {4,8}\]/gs);
  const lists = [...written].map(([, list]) => list).join("\n");
  // Each writer of the field is one of these lists.
  expect(source.match(/\blimits: (?!BTreeMap)|\.limits\s*\.(?:extend|insert|entry)/g)).toHaveLength(2);
  return names(lists, /\(\s*"(\w+)",/g);
}

/** What the agent's reference says it counts: losses apart. */
function documentedNames(): unknown[] {
  const [, limits = ""] = sourceOf("agent/docs/reference.md").split("\n## Limits\n");
  const counters = [...limits.matchAll(/^\|.*\|([^|]*)\|$/gm)].map(([, last]) => last).join("\n");
  return names(counters, /`([a-z_]+)`/g);
}

/** What the server counts of the labels that a sender gives. */
function labelNames(): unknown[] {
  const source = sourceOf("server/src/ingest/rows/labels.rs").replace(
    /reach\(([A-Z_]+)\)/g,
    (whole, constant: string, _at, all: string) => {
      const text = new RegExp(`const ${constant}: &str = ("\\w+")`).exec(all)?.[1];
      return text === undefined ? whole : `reach(${text})`;
    },
  );
  expect(source).not.toMatch(/\.reach\((?!")/);
  return names(source, /\.reach\("(\w+)"\)/g);
}

/** What the server counts in an agent's report itself. */
function countedNames(): unknown[] {
  return names(sourceOf("server/src/ingest/rows/resource.rs"), /add_count\(&mut report\.limits, "(\w+)"/g);
}

describe("the words of limits", () => {
  it("are there for each that an agent or a server can report, and for no other", () => {
    expect(reportedNames()).toEqual(documentedNames());
    expect(Object.keys(LIMIT_WORDS).sort()).toEqual([...reportedNames(), ...labelNames(), ...countedNames()].sort());
  });
});

describe("limits", () => {
  it("are named with what they mean; one of a newer agent by its name alone", () => {
    const limits = limitsOf({ tables_late: 12_345, rate_lowered: 0, flux: 2 });
    expect(limits.reached).toBe(2);
    expect(plain(limits.brief)).toBe("tables_late 12.3 k, flux 2");
    expect(plain(limits.text)).toBe(
      "tables_late: 12 345 stacks truncated, since their unwind tables took too long\nflux: 2",
    );
  });

  it("are few words where many were reached, and the text has all", () => {
    const limits = limitsOf({ rate_lowered: 3, tables_late: 700, stacks_not_copied: 11 });
    expect([limits.reached, limits.brief]).toEqual([3, "tables_late 700 and 2 more"]);
    expect(limits.text.split("\n")).toHaveLength(3);
  });

  it("have their causes below them", () => {
    const limits = limitsOf({
      runtimes_unknown: 3,
      "runtimes_unknown.Python 3.16: unknown layout": 2,
      "runtimes_unknown.HotSpot 26: no field Method._code": 1,
    });
    expect([limits.reached, limits.brief]).toEqual([1, "runtimes_unknown 3"]);
    expect(limits.text.split("\n").slice(1)).toEqual([
      "  Python 3.16: unknown layout: 2",
      "  HotSpot 26: no field Method._code: 1",
    ]);
  });

  it("are none where none was reached, or the agent does not tell", () => {
    expect(limitsOf(undefined)).toEqual({ reached: 0, brief: "", text: "" });
    expect(limitsOf({ rate_lowered: 0 })).toEqual(limitsOf({}));
  });
});
