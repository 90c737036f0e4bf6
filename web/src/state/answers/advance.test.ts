import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Parameters, SeriesAnswer } from "../../api/index.ts";
import { navigate, page } from "../address/page.ts";
import { byBehind, startAdvance } from "./advance.ts";
import { compareSeries } from "./compare.ts";
import { exploreSeries } from "./explore.ts";

/** Of a service with one pod, no units, two processes. */
const VALUES: Record<string, number> = { service: 2, pod: 1, unit: 0, process: 2, thread: 5 };
const asked: string[] = [];

vi.mock("../../api/index.ts", async (original) => ({
  ...(await original<object>()),
  api: {
    series: async ({ by }: Parameters): Promise<Partial<SeriesAnswer>> => {
      asked.push(String(by));
      const line = { value: "", cores: [], samples: 1, cpu_seconds: 1, total: 1 };
      return { by: String(by), other: null, series: Array(VALUES[String(by)] ?? 0).fill(line) };
    },
  },
}));

const at = (seconds: number) => String(1_763_713_000_000 + seconds * 1000);
const WINDOWS = { from: at(60), until: at(120), baseFrom: at(0), baseUntil: at(60) };

describe("the chart of a selection that was narrowed", () => {
  beforeAll(() => {
    vi.stubGlobal("location", { pathname: "/", search: "", hash: "" });
    vi.stubGlobal("history", { pushState: () => {}, replaceState: () => {} });
    exploreSeries.start();
    compareSeries.start();
    startAdvance();
  });

  for (const view of ["explore", "compare"] as const)
    it(`goes on past labels of one value in ${view}, and changes no window`, async () => {
      const baseQuery = view === "compare" ? '{service="a",node="old"}' : "";
      navigate({ view, ...WINDOWS, query: "", baseQuery, by: "service" });
      await vi.waitFor(() => expect(asked.at(-1)).toBe("service"));
      asked.length = 0;
      const query = `{service="${view}"}`;
      navigate({ query, by: byBehind("service", query) });
      await vi.waitFor(() => expect(asked).toEqual(["pod", "unit", "process"]));
      expect(page.peek()).toMatchObject({ view, query, baseQuery, by: "process", ...WINDOWS });
    });
});
