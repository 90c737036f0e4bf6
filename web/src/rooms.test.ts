import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";

/** A room imports from those behind it in this list, never from those before it. */
const ORDER = [
  "main.tsx",
  "views/App.tsx",
  "views/palette",
  "views/nodes",
  "views/heatmap",
  "views/explore",
  "views/compare",
  "views/timeline",
  "views/threads",
  "views/saved",
  "views/bursts",
  "views/markers",
  "views/picture",
  "views/graph",
  "views/frame",
  "views/scope",
  "views/chart",
  "views/flame",
  "views/bar",
  "views/wheel",
  "views/lazyViews.tsx",
  "views/lazyView.tsx",
  "views/plainly.ts",
  "views/ui",
  "state/start.ts",
  "state/live.ts",
  "state/moments",
  "state/screen",
  "state/waits",
  "state/answers",
  "state/question",
  "state/address",
  "state/lazyFile.ts",
  "api/views.ts",
  "api/bursts.ts",
  "api/index.ts",
  "logic/picture",
  "logic/saved",
  "logic/source",
  "logic/graph",
  "logic/waits",
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
  "style",
];
const MOST_FILES = 14;
/** All modules are compiled for it, beside much else on a busy machine. */
const PATIENCE_MS = 120_000;

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

  it("stand in the README in their order", () => {
    const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
    const rows = readme.split("| room | rooms in it |")[1]?.split("\n\n")[0] ?? "";
    const told = [...rows.matchAll(/^\| `(\w+)`.*?\| (.*) \|$/gm)].flatMap(([, room, inside = ""]) =>
      [...inside.matchAll(/`([^`]+)`/g)].map(([, name]) => `${room}/${name}`),
    );
    expect(told).toEqual(ORDER.filter((room) => /^(views|state|logic)\//.test(room)));
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
    const asking = ["api/index.ts", "api/views.ts", "api/bursts.ts"];
    const callers = [...sources.keys()].filter((path) => importsOf(path).some((to) => asking.includes(to)));
    expect(callers.filter((path) => !path.startsWith("state/") && !path.startsWith("api/"))).toEqual([]);
  });

  it("draw graphs by their properties alone, without the state", () => {
    const reached = new Set<string>();
    const visit = (path: string) => {
      if (reached.has(path)) return;
      reached.add(path);
      importsOf(path).forEach(visit);
    };
    [...sources.keys()].filter((path) => path.startsWith("views/flame/")).forEach(visit);
    for (const path of ["views/timeline/TimelineCanvas.tsx", "views/graph/FrameTree.tsx"]) visit(path);
    expect([...reached].filter((path) => path.startsWith("state/"))).toEqual([]);
  });

  it(
    "do nothing when they are imported",
    async () => {
      // There is neither a document nor an address here: whoever looks for one fails.
      vi.useFakeTimers();
      const files = import.meta.glob(["./**/*.{ts,tsx}", "!./**/*.test.ts", "!./main.tsx", "!./**/*.worker.ts"]);
      for (const load of Object.values(files)) await load();
      expect(Object.keys(files).length).toBeGreaterThan(100);
      expect(vi.getTimerCount()).toBe(0);
      vi.useRealTimers();
    },
    PATIENCE_MS,
  );

  it("hold no more files than a person takes in at once", () => {
    const counts = new Map<string, number>();
    for (const path of sources.keys()) {
      const folder = path.split("/").slice(0, -1).join("/");
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
    expect([...counts].filter(([, count]) => count > MOST_FILES)).toEqual([]);
  });
});
