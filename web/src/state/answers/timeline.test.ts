import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { faultsOf, gradeOf } from "../../logic/agents/grade.ts";
import { answerOf } from "../../logic/fixtures.ts";
import { amend } from "../address/page.ts";
import { DEFAULTS } from "../address/url.ts";
import { observed } from "./explore.ts";
import { startTimeline } from "./timeline.ts";

const TIMES = { from: "1000", until: "11000" };
let asked: URL[] = [];

/** What is asked at a path, and how good the data of its answer is. */
async function told(path: string, parameter: string) {
  await vi.waitFor(() => expect(observed.value?.data.value).toBeTruthy());
  const question = asked.find((one) => one.pathname.endsWith(path) && one.searchParams.has(parameter));
  const answer = observed.value?.data.value;
  if (!answer) throw new Error("there is no answer");
  const faults = faultsOf({ ...answer, window: answer });
  return { question: question?.searchParams, faults: faults.map(({ text }) => text), grade: gradeOf(faults) };
}

describe("the quality of a timeline's data", () => {
  beforeAll(() => {
    vi.stubGlobal("location", { hash: "", search: "", pathname: "/" });
    vi.stubGlobal("history", { pushState: () => {}, replaceState: () => {} });
    // A flamegraph whose node lost samples, whatever is asked: what ran before is told as one, too.
    vi.stubGlobal("fetch", async (target: string) => {
      asked.push(new URL(target, "http://server"));
      const answer = answerOf([{ name: "net_rx_action", self: 100 }]);
      return new Response(JSON.stringify({ ...answer, quality: { ...answer.quality, lost: { ring_full: 3 } } }));
    });
    startTimeline();
  });

  beforeEach(() => {
    amend({ ...DEFAULTS });
    asked = [];
  });

  afterAll(() => {
    amend({ ...DEFAULTS });
    vi.unstubAllGlobals();
  });

  it("is asked for of the lane, without its frames, since samples come without what was lost", async () => {
    amend({ ...DEFAULTS, ...TIMES, view: "timeline", query: '{node="a",cpu="11"}' });
    const { question, faults, grade } = await told("/flamegraph", "min_share");
    expect(question?.get("query")).toBe('{node="a",cpu="11"}');
    expect([question?.get("from"), question?.get("until")]).toEqual(["1000", "11000"]);
    expect(Number(question?.get("min_share"))).toBeGreaterThan(0.99);
    expect([faults, grade]).toEqual([["3 samples lost"], "check"]);
  });

  it("is that of what ran before, where no lane is chosen", async () => {
    amend({ ...DEFAULTS, ...TIMES, view: "timeline", query: "", hit: "net_rx_action", before: "100" });
    const { question, faults } = await told("/timeline", "before");
    expect(question?.get("before")).toBe("100ms");
    expect(faults).toEqual(["3 samples lost"]);
    expect(asked.some((one) => one.pathname.endsWith("/flamegraph"))).toBe(false);
  });

  it("is not told where nothing is looked at", () => {
    amend({ ...DEFAULTS, ...TIMES, view: "timeline", query: "" });
    expect(observed.value).toBeNull();
    amend({ ...DEFAULTS, view: "nodes" });
    expect(observed.value).toBeNull();
  });
});
