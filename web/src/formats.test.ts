import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

/** The text of a file, by its path from the root of the repository. */
const sourceOf = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");

const SERVER = sourceOf("server/src/api/openapi/format.rs");
const WORDS = new Map([...SERVER.matchAll(/Self::(\w+) => "(\w+)"/g)].map(([, name, word]) => [name, word] as const));

/** The words that the server takes as `format`, of a list of its own. */
function takenIn(list: string): unknown[] {
  const [, names = ""] = new RegExp(`const ${list}: [^=]*= \\[(.*?)\\];`, "s").exec(SERVER) ?? [];
  return [...names.matchAll(/TreeFormat::(\w+)/g)].map(([, name]) => WORDS.get(name)).sort();
}

/** The words that the page has links for. */
function offeredFor(path: string): unknown[] {
  const page = sourceOf("web/src/views/graph/DownloadLinks.tsx");
  const [, links = ""] = new RegExp(`"${path}": \\[\\n(.*?)\\n {2}\\],`, "s").exec(page) ?? [];
  return [...links.matchAll(/^ {4}\["(\w+)"/gm)].map(([, word]) => word).sort();
}

describe("formats to download", () => {
  it("are all that the server has", () => {
    expect(WORDS.size).toBeGreaterThan(0);
    expect(offeredFor("/flamegraph")).toEqual(takenIn("OF_FLAMEGRAPH"));
    expect(offeredFor("/diff")).toEqual(takenIn("OF_DIFFERENCE"));
    // An empty list on both sides would be alike, too.
    expect(takenIn("OF_DIFFERENCE")).toContain("svg");
  });
});
