import { describe, expect, it } from "vitest";
import { spentOf } from "./spentOf.ts";

describe("what time is told of", () => {
  const key = { name: "main", module: "kubelet", kind: "native" };

  it("is the selected function, whatever is searched for", () => {
    expect(spentOf(key, "")).toEqual({
      of: "function",
      name: "main",
      match: { match_frame: "native,kubelet,main" },
      isSearched: false,
    });
    expect(spentOf(key, "malloc")).toMatchObject({ of: "function", name: "main", isSearched: true });
  });

  it("is what the search finds, as the server looks for it, where no frame is selected", () => {
    expect(spentOf(null, " memcg.stat ")).toEqual({
      of: "search",
      text: "memcg.stat",
      match: { match: "(?i)memcg\\.stat" },
    });
    expect(spentOf(null, "/^read$/i").match).toEqual({ match: "(?i)^read$" });
  });

  it("is all that is selected where there is neither, and where the search is no expression", () => {
    expect(spentOf(null, "  ")).toEqual({ of: "all", match: {}, isBroken: false });
    expect(spentOf(null, "/(/")).toEqual({ of: "all", match: {}, isBroken: true });
  });
});
