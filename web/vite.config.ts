import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const SERVER = process.env.STAKEOUT_URL ?? "http://127.0.0.1:7373";
const BEGIN = fileURLToPath(new URL("src/main.tsx", import.meta.url));

interface Modules {
  getModuleInfo: (id: string) => { importedIds: readonly string[] } | null;
}

/** What the page imports before anything is shown, found once a build. */
const first = new Set<string>();

/** All of it is one file: split by who else uses what, it would be ten, each a request and worse to compress. */
function firstChunk(id: string, modules: Modules): string | null {
  const open = first.size === 0 ? [BEGIN] : [];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    first.add(next);
    open.push(...(modules.getModuleInfo(next)?.importedIds ?? []).filter((one) => !first.has(one)));
  }
  return first.has(id) ? "page" : null;
}

/**
 * What two later parts share, as few files. `scripts/compress.mjs` lists which of them each view needs, and the server
 * names those beside the page, so that a link to a view waits for no round trip more.
 */
const SHARED = {
  "src/logic/series/changePoints.ts": "ComparePoints",
  "src/logic/compare/baseline.ts": "ComparePoints",
  "src/state/answers/timeline.ts": "TimelineSamples",
  "src/logic/waits/parts.ts": "TimelineParts",
  "src/views/ui/beside.ts": "TimelineTips",
  "src/logic/picture/textTable.ts": "NodesTable",
};
const sharedChunk = (id: string) => Object.entries(SHARED).find(([path]) => id.endsWith(path))?.[1] ?? null;

/**
 * What Vite puts around each import of a part would also fetch its styles and what it imports in turn: the styles of
 * later parts are one sheet that `src/views/lazyView.tsx` fetches, and `src/views/lazyViews.tsx` and the server say
 * what else a part needs.
 */
const PLAIN_IMPORT = "export const __vitePreload = (load) => load();";

/** Tests that change the time zone: a process has one, and what a thread sets is none. */
const OF_ZONES = ["src/logic/time/ticks.test.ts", "src/logic/time/readRange.test.ts"];

// The server embeds dist/ and serves it under a strict content security policy: no inline scripts or styles, so
// nothing is inlined here either.
export default defineConfig({
  base: "/",
  plugins: [
    { name: "plain-imports", enforce: "pre", load: (id) => (id.includes("vite/preload-helper") ? PLAIN_IMPORT : null) },
  ],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    sourcemap: false,
    reportCompressedSize: true,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: firstChunk, debugName: "first", priority: 1 },
            { name: sharedChunk, debugName: "shared" },
          ],
        },
      },
    },
  },
  worker: { format: "es" },
  server: {
    // With the page's own Host: the server refuses SQL that another origin asks for.
    proxy: Object.fromEntries(
      ["/api", "/v1development"].map((path) => [path, { target: SERVER, changeOrigin: false }]),
    ),
  },
  test: {
    projects: [
      // Each file has a thread of its own: a process takes longer to begin than most files take.
      { extends: true, test: { name: "threads", include: ["src/**/*.test.ts"], exclude: OF_ZONES, pool: "threads" } },
      { extends: true, test: { name: "zones", include: OF_ZONES, pool: "forks" } },
    ],
  },
});
