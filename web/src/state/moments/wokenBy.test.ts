import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { answerOf } from "../../logic/fixtures.ts";
import { amend } from "../address/page.ts";
import { DEFAULTS } from "../address/url.ts";
import { flamegraph } from "../answers/explore.ts";
import { startChanges } from "../screen/tree.ts";
import { wokenBy } from "./wokenBy.ts";

const FOLDED = "2 frames below the threshold";
const WAITS = answerOf([
  {
    name: "main",
    calls: [
      { name: "take", self: 3 },
      { name: FOLDED, kind: "trimmed", self: 1 },
    ],
  },
]);
const WAKERS = { ...answerOf([{ name: "unlock", self: 4 }]), wakers: { known: 4, unknown: 0 } };
const PAGE = { ...DEFAULTS, from: "0", until: "10000", type: "off_cpu", group: "none", woken: true };

let asked: URLSearchParams[] = [];

/** Once what is told is of that subject. */
const told = (name: string, isWider: boolean) =>
  vi.waitFor(
    () => {
      expect(wokenBy.stale.value).toBe(false);
      expect(wokenBy.data.value?.subject).toMatchObject({ name, isWider });
    },
    // What changes a tree is a file of its own.
    { timeout: 4_000 },
  );

describe("who ended the waits", () => {
  beforeAll(() => {
    vi.stubGlobal("location", { hash: "", search: "", pathname: "/" });
    vi.stubGlobal("history", { pushState: () => {}, replaceState: () => {} });
    vi.stubGlobal("fetch", async (target: string) => {
      const { searchParams } = new URL(target, "http://server");
      const isOfWakers = searchParams.get("stacks") === "wakers";
      if (isOfWakers) asked.push(searchParams);
      return new Response(JSON.stringify(isOfWakers ? WAKERS : WAITS));
    });
    flamegraph.start();
    startChanges();
    wokenBy.start();
  });

  beforeEach(() => {
    amend({ ...DEFAULTS });
    asked = [];
  });

  afterAll(() => {
    amend({ ...DEFAULTS });
    vi.unstubAllGlobals();
  });

  it("is told of what is zoomed, where another frame asks the server for the same", async () => {
    amend({ ...PAGE, focus: "main" });
    await told("main", false);
    // What was folded is asked for by its parent.
    amend({ focus: `main;${FOLDED}` });
    await told(FOLDED, true);
    amend({ focus: "main" });
    await told("main", false);
    expect(new Set(asked.map(String)).size).toBe(1);
    expect(asked[0]?.get("match_path")).toBe("native,,main");
    expect(asked[0]?.has("of")).toBe(false);
  });

  it("is asked for at its place, where a change of the graph found nothing to do", async () => {
    amend({ ...PAGE, focus: "main;take", transform: "focus:absent" });
    await told("take", false);
    expect(asked.at(-1)?.get("match_path")).toBe("native,,main;native,,take");
    amend({ focus: "" });
    await told("", false);
    expect(asked.at(-1)?.has("match")).toBe(false);
  });
});
