import { describe, expect, it } from "vitest";

/** A room imports from those behind it in this list, never from those before it. */
const ORDER = [
  "main.tsx",
  "views/App.tsx",
  "views/nodes",
  "views/heatmap",
  "views/explore",
  "views/compare",
  "views/timeline",
  "views/graph",
  "views/chart",
  "views/flame",
  "views/bar",
  "views/lazyViews.tsx",
  "views/lazyView.tsx",
  "views/ui",
  "state/start.ts",
  "state/live.ts",
  "state/screen",
  "state/answers",
  "state/question",
  "state/address",
  "state/lazyFile.ts",
  "api/index.ts",
  "logic/graph",
  "logic/compare",
  "logic/heatmap",
  "logic/flame",
  "logic/table",
  "logic/transform",
  "logic/tree",
  "logic/series",
  "logic/agents",
  "logic/labels",
  "logic/colour.ts",
  "logic/time",
  "logic/text",
  "api/error.ts",
  "api/address.ts",
  "api/types.ts",
];
const MOST_FILES = 14;

const texts = import.meta.glob<string>("./**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });
const sources = new Map(
  Object.entries(texts)
    .map(([path, text]) => [path.slice(2), text] as const)
    .filter(([path]) => !path.includes(".test.") && path !== "logic/fixtures.ts"),
);

/** What a file imports as soon as it is imported itself; what is fetched later, by `import()`, is none of it. */
function importsOf(path: string): string[] {
  const folder = path.split("/").slice(0, -1);
  return [...(sources.get(path) ?? "").matchAll(/\bfrom\s+"(\.[^"]+)"/g)].map(([, to]) => {
    const parts = [...folder];
    for (const part of (to as string).split("/")) {
      if (part === "..") parts.pop();
      else if (part !== ".") parts.push(part);
    }
    return parts.join("/");
  });
}

const placeOf = (path: string) => ORDER.findIndex((room) => path === room || path.startsWith(`${room}/`));

describe("rooms", () => {
  it("import to their right", () => {
    const wrong = [...sources.keys()].flatMap((path) =>
      importsOf(path)
        .filter((to) => placeOf(to) < placeOf(path))
        .map((to) => `${path} imports ${to}`),
    );
    expect(wrong).toEqual([]);
    expect([...sources.keys()].filter((path) => placeOf(path) < 0)).toEqual([]);
  });

  it("have files without circles", () => {
    const [done, open] = [new Set<string>(), new Set<string>()];
    const circles: string[] = [];
    const visit = (path: string) => {
      if (open.has(path)) circles.push([...open, path].join(" > "));
      if (open.has(path) || done.has(path)) return;
      open.add(path);
      importsOf(path).forEach(visit);
      open.delete(path);
      done.add(path);
    };
    [...sources.keys()].forEach(visit);
    expect(circles).toEqual([]);
  });

  it("leave calls to the server to the state", () => {
    const callers = [...sources.keys()].filter((path) => importsOf(path).includes("api/index.ts"));
    expect(callers.filter((path) => !path.startsWith("state/"))).toEqual([]);
  });

  it("hold no more files than a person takes in at once", () => {
    const counts = new Map<string, number>();
    for (const path of sources.keys()) {
      const folder = path.split("/").slice(0, -1).join("/");
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
    expect([...counts].filter(([, count]) => count > MOST_FILES)).toEqual([]);
  });
});
