import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { answerOf } from "../../logic/fixtures.ts";
import { amend } from "../address/page.ts";
import { DEFAULTS } from "../address/url.ts";
import { flamegraph } from "../answers/explore.ts";
import { framePlaces, startFrame } from "./frame.ts";
import { matcher, wholeFound, wholeMatch } from "./search.ts";
import { startChanges } from "./tree.ts";

const PAGE = { ...DEFAULTS, from: "0", until: "10000", group: "none" };
const GRAPH = answerOf([
  { name: "walk", module: "prog", self: 3 },
  { name: "read", module: "prog", self: 2 },
  { name: "1 frame below the threshold", kind: "trimmed", self: 1 },
]);
const PATIENCE = { timeout: 4_000 };

/** Answers to SQL wait for this. */
let gate: Promise<void> = Promise.resolve();
let asked: string[] = [];

/** What the server says of places: each function stands in a file of its name. */
async function places(body: string): Promise<Response> {
  const name = /function = '([^']*)'/.exec(body)?.[1] ?? "";
  asked.push(name);
  await gate;
  return new Response(JSON.stringify({ rows: [["/bin/prog", "", `${name}.c`, 1, 2]] }));
}

describe("what is asked of the page's graph", () => {
  beforeAll(() => {
    vi.stubGlobal("location", { hash: "", search: "", pathname: "/" });
    vi.stubGlobal("history", { pushState: () => {}, replaceState: () => {} });
    vi.stubGlobal("fetch", async (target: string, request?: RequestInit) => {
      const { pathname, searchParams } = new URL(target, "http://server");
      if (pathname.endsWith("/sql")) return places(String(request?.body));
      const match = searchParams.has("match") ? { match: { samples: 4, share: 0.5 } } : {};
      return new Response(JSON.stringify(pathname.endsWith("/flamegraph") ? { ...GRAPH, ...match } : {}));
    });
    flamegraph.start();
    startChanges();
    startFrame();
    wholeMatch.start();
  });

  afterAll(() => {
    amend({ ...DEFAULTS });
    vi.unstubAllGlobals();
  });

  it("is told of the selected frame alone, also while it is asked for", async () => {
    amend({ ...PAGE, frame: "walk" });
    await vi.waitFor(() => expect(framePlaces.value?.places[0]?.sources[0]?.file).toBe("walk.c"), PATIENCE);
    let release = () => {};
    gate = new Promise((resolve) => {
      release = resolve;
    });
    amend({ frame: "read" });
    // Neither before the selection rests, nor while the server is asked.
    expect(framePlaces.value).toBeNull();
    await vi.waitFor(() => expect(asked.at(-1)).toBe("read"), PATIENCE);
    expect(framePlaces.value).toBeNull();
    release();
    await vi.waitFor(() => expect(framePlaces.value?.places[0]?.sources[0]?.file).toBe("read.c"), PATIENCE);
    expect(framePlaces.value?.key.name).toBe("read");
    asked = [];
  });

  it("is the share of a search in this very graph", async () => {
    amend({ ...PAGE, match: "walk" });
    expect(matcher.value?.("walk")).toBe(true);
    await vi.waitFor(() => expect(wholeFound.value?.samples).toBe(4), PATIENCE);
    // Of a graph that was changed, and of two windows, the server was not asked.
    amend({ transform: "merge" });
    expect(wholeFound.value).toBeNull();
    amend({ ...PAGE, match: "walk" });
    await vi.waitFor(() => expect(wholeFound.value?.samples).toBe(4), PATIENCE);
    amend({ view: "compare", baseFrom: "0", baseUntil: "5000" });
    expect(wholeFound.value).toBeNull();
  });
});
