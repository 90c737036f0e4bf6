import { describe, expect, it } from "vitest";
import type { Burst } from "../../api/types.ts";
import {
  costText,
  cpusNamed,
  isUnderWay,
  limitOf,
  meantText,
  nodesMeant,
  nodesThatCan,
  requestOf,
  shownAt,
  stateText,
  subjectText,
  takenText,
  type Wish,
} from "./bursts.ts";

const ROWS = [
  { node: "db-1", cpus: 4, burst_limit_hz: 999 },
  // The agent before it, which ran on the same node.
  { node: "db-1", cpus: 4, burst_limit_hz: 0 },
  { node: "db-2", cpus: 8, burst_limit_hz: 4999 },
  { node: "web-1", cpus: 2, burst_limit_hz: 99 },
  { node: "old", cpus: 2 },
];
const CAN = nodesThatCan(ROWS);
const WISH: Wish = { nodes: "db-1", cpus: "", service: "", process: "", rest: "", frequency: "999", seconds: "10" };
const BURST: Burst = {
  ...{ id: "1", node: "db-1", instance: "i", state: "ended", cpus: "0,2-3", service: "", process: "postgres" },
  ...{ query: "", frequency_hz: 999, seconds: 10, created_ms: 900, from_ms: 1000.5, until_ms: 11_000.5 },
  ...{ samples: 29_970, cpu_seconds: 0.75, reason: "" },
};
const plain = (text: string) => text.replaceAll("\u202f", " ");

describe("who can be looked at", () => {
  it("are nodes whose agents ask, each once", () => {
    expect(CAN.map(({ node }) => node)).toEqual(["db-1", "db-2", "web-1"]);
    expect(limitOf(CAN)).toBe(4999);
    expect(limitOf([])).toBe(0);
  });

  it("is meant by a name or a selector of nodes", () => {
    const meant = (text: string) => nodesMeant(text, CAN)?.map(({ node }) => node) ?? null;
    expect(meant(" db-1 ")).toEqual(["db-1"]);
    expect(meant("old")).toEqual([]);
    expect(meant('{node=~"db-.*"}')).toEqual(["db-1", "db-2"]);
    expect(meant('{node=~"b-1"}')).toEqual([]);
    expect(meant('{node!~"db-.*"}')).toEqual(["web-1"]);
    expect(meant('{node!="db-1",node=~"db-.*"}')).toEqual(["db-2"]);
    expect(meant('{node="db-1",container="api"}')).toEqual(["db-1"]);
    expect(meant('{container="api"}')).toEqual(["db-1", "db-2", "web-1"]);
    expect([meant('{cluster="k8s"}'), meant("{node"), meant('{node=~"("}')]).toEqual([null, null, null]);
    expect(meantText('{node=~"db-.*"}', nodesMeant('{node=~"db-.*"}', CAN))).toMatch(/^2 nodes, at most 4.999 Hz\.$/);
    expect(meantText("old", [])).toBe("No node of these asks for bursts now.");
  });
});

it("CPUs are counted as the server reads them", () => {
  expect(["0", "0,2-3", " 3, 3 ", "0-15"].map(cpusNamed)).toEqual([1, 3, 1, 16]);
  for (const wrong of ["", "a", "1-", "3-1", "+1", "0-65536", "1,,2", "-1"]) expect(cpusNamed(wrong), wrong).toBeNull();
});

describe("a wish", () => {
  it("becomes a request, without what is empty", () => {
    expect(requestOf(WISH)).toEqual({ node: "db-1", frequency_hz: 999, seconds: 10 });
    expect(requestOf({ ...WISH, nodes: ' {node=~"db-.*"}', cpus: " 0,2-3 ", process: "postgres" })).toEqual({
      ...{ query: '{node=~"db-.*"}', cpus: "0,2-3", process: "postgres", frequency_hz: 999, seconds: 10 },
    });
  });

  it("has a selector of all that it is of beside its fields", () => {
    const asked = (wish: Partial<Wish>) => requestOf({ ...WISH, ...wish });
    const rest = ' {container="api",thread!="idle"}';
    expect(asked({ rest, cpus: "1" })).toEqual({
      ...{ query: '{node="db-1",container="api",thread!="idle"}', cpus: "1", frequency_hz: 999, seconds: 10 },
    });
    expect(asked({ nodes: '{cluster="eu"}', rest, service: "web" })).toEqual({
      ...{ query: '{cluster="eu",container="api",thread!="idle"}', service: "web", frequency_hz: 999, seconds: 10 },
    });
    expect(asked({ rest: "{container" })).toHaveProperty("fault");
    expect(asked({ nodes: "{node", rest })).toHaveProperty("fault");
  });

  it("leaves to the server what it may not be, and says what is no number", () => {
    expect(requestOf({ ...WISH, frequency: "100000", seconds: "-3" })).toMatchObject({
      frequency_hz: 100_000,
      seconds: -3,
    });
    for (const wrong of ["", "fast", "9.5", "1e3"])
      expect(requestOf({ ...WISH, frequency: wrong })).toHaveProperty("fault");
    expect(requestOf({ ...WISH, seconds: "a" })).toHaveProperty("fault");
    expect(requestOf({ ...WISH, nodes: " " })).toHaveProperty("fault");
  });

  it("says what it may cost", () => {
    const cost = (wish: Partial<Wish>, text = "db-1") => plain(costText({ ...WISH, ...wish }, nodesMeant(text, CAN)));
    // 999 x 4 x 25 µs = 0.0999 cores; 39,960 samples in 10 s.
    expect(cost({})).toBe(
      "999 Hz × 4 CPUs × 25 µs: about 0.100 cores for 10.0 s (2.50 % of each CPU), up to 39 960 samples.",
    );
    expect(cost({ cpus: "0,2-3", frequency: "400" }, '{node=~"db-.*"}')).toMatch(
      /^400 Hz × 6 CPUs × 25 µs: .* 0\.060 /,
    );
    for (const of of [{ process: "postgres" }, { rest: '{container="api"}' }])
      expect(cost(of)).toContain("less where what is chosen seldom runs");
    expect(cost({ rest: '{cpu="1"}' })).toBe("");
    expect([cost({ cpus: "x" }), cost({ seconds: "" }), cost({}, "old"), cost({}, "{no")]).toEqual(["", "", "", ""]);
  });
});

describe("a burst", () => {
  it("says what became of it", () => {
    expect(plain(stateText({ ...BURST, state: "running" }, 8_200))).toBe("running, 3.00 s left");
    expect(stateText({ ...BURST, state: "running" }, 11_900)).toBe("running: it is about to end");
    expect(stateText({ ...BURST, state: "waiting", until_ms: null }, 0)).toContain("not taken it yet");
    const states = ["waiting", "running", "ended", "cancelled", "refused", "lost"] as const;
    expect(states.filter((state) => isUnderWay({ ...BURST, state }))).toEqual(["waiting", "running"]);
  });

  it("says of what it is, and what it gave and took", () => {
    expect(plain(subjectText(BURST))).toBe("CPU 0,2-3, process postgres, 999 Hz for 10.0 s");
    const query = '{container="api"}';
    expect(plain(subjectText({ ...BURST, cpus: "", process: "", query }))).toBe(
      'all CPUs, {container="api"}, 999 Hz for 10.0 s',
    );
    expect(plain(takenText(BURST))).toBe("29 970 samples, the agent took 750 ms of CPU time");
    expect(takenText({ ...BURST, state: "refused" })).toBe("");
  });

  it("is shown at its window, of what it was of", () => {
    expect(shownAt(BURST)).toEqual({
      ...{ query: '{node="db-1",process="postgres",cpu=~"0|2|3"}', from: "1000", until: "11001" },
    });
    expect(shownAt({ ...BURST, cpus: "3", process: "", from_ms: 1000, until_ms: 1200 })).toEqual({
      ...{ query: '{node="db-1",cpu="3"}', from: "1000", until: "2000" },
    });
    expect(shownAt({ ...BURST, cpus: "0-99", process: "", until_ms: null })?.query).toBe('{node="db-1"}');
    expect(shownAt({ ...BURST, cpus: "", query: '{container="api",thread!="a"}' })?.query).toBe(
      '{node="db-1",process="postgres",container="api",thread!="a"}',
    );
    expect(shownAt({ ...BURST, from_ms: null })).toBeNull();
  });
});
