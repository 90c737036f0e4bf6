import { beforeAll, describe, expect, it, vi } from "vitest";
import { navigate, page } from "../../state/address/page.ts";
import { actOnValue } from "./valueActions.ts";

const at = (seconds: number) => String(1_763_713_000_000 + seconds * 1000);
const WINDOWS = { from: at(60), until: at(120), baseFrom: at(0), baseUntil: at(60) };

describe("what is done with a value", () => {
  beforeAll(() => {
    vi.stubGlobal("location", { pathname: "/", search: "", hash: "" });
    vi.stubGlobal("history", { pushState: () => {}, replaceState: () => {} });
  });

  for (const view of ["explore", "compare", "threads"] as const)
    it(`leads on to the next label in ${view}, and leaves windows and side A as they are`, () => {
      const baseQuery = '{node="old"}';
      navigate({ view, ...WINDOWS, query: '{node="new"}', baseQuery, by: "service" });
      actOnValue("service", "kubelet", "only");
      const query = '{node="new",service="kubelet"}';
      expect(page.peek()).toMatchObject({ view, query, baseQuery, by: "pod", ...WINDOWS });
      actOnValue("acme.team", "red", "only");
      expect(page.peek().by).toBe("pod");
    });
});
