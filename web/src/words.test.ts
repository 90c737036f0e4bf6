/** The words of the page: those that the field does not use, and that better ones took the place of, stand nowhere. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL(".", import.meta.url));

/** All that the page can say: its sources without their comments. */
const SOURCES = readdirSync(ROOT, { recursive: true, encoding: "utf8" })
  .filter((path) => /(?<!\.test)\.tsx?$/.test(path))
  .map((path) => {
    const text = readFileSync(`${ROOT}${path}`, "utf8");
    return [path, text.replace(/\/\*.*?\*\//gs, "").replace(/^\s*\/\/.*$/gm, "")] as const;
  });

/** Each with what is said instead. */
const OLD: readonly [RegExp, string][] = [
  [/\bstacks?( through those files)?( are)? cut\b|\bcut stacks?\b/i, "truncated stacks"],
  [/title: "Cut"/, "Truncated"],
  [/(frames|stacks|addresses)[^"`]* without a name\b|\bunnamed stacks?\b/i, "unsymbolized"],
  [/title: "Unnamed"/, "Unsymbolized"],
  [/\bnot covered\b/i, "coverage gap"],
  [/\bsilent agents?\b/i, "agents not reporting"],
  [/shown to differ|beyond chance/i, "no significant change"],
  [/tested frames?\b/i, "1 cause (26 of 29 frames)"],
  [/% confidence|\} confidence/i, "99.9 % CI"],
  [/lock (the )?lengths/i, "Equal lengths"],
  [/A\/A control/i, "A/A check passed (0 of 2)"],
  [/\bnot (as )?steady\b/i, "Baseline unstable"],
  [/"Normali[sz]e\b/, "Scale by"],
  [/compare: self/i, "Self time"],
  [/compare across|at the jump/i, "Compare before/after"],
  [/compare with before/i, "Compare with previous window"],
  [/up to capacity/i, "Scale to capacity"],
  [/"(When it ran|In order|Samples in order)\b/, "Sub-second heatmap, Sample timeline"],
  [/\ba column is\b/i, "Column width"],
  [/"what ran (in the|before)/i, "Preceding samples"],
  [/innermost frame/i, "Leaf frame"],
  [/lowest frames that explain/i, "What explains the change"],
  [/a selected frame, or a search, narrows it/i, "Select a frame, or search for a function"],
  [/since when\?/i, "History"],
  [/zoom to (the )?caller/i, "Zoom out one frame"],
  [/\bforget it\b/i, "Clear zoom"],
  [/title: "Taken"/, "Sampled"],
];

describe("the words of the page", () => {
  it("are the field's, not those that they took the place of", () => {
    expect(SOURCES.length).toBeGreaterThan(200);
    const found = SOURCES.flatMap(([path, text]) =>
      OLD.flatMap(([pattern, instead]) => {
        const said = pattern.exec(text)?.[0];
        return said === undefined ? [] : [`${path} says "${said}": better ${instead}`];
      }),
    );
    expect(found).toEqual([]);
  });
});
