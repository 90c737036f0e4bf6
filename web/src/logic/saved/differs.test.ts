import { describe, expect, it } from "vitest";
import { differences, freeName } from "./differs.ts";

describe("two addresses", () => {
  it("differ in parameters, whatever their order", () => {
    expect(differences("/?view=compare&query=a", "/?query=a&view=compare")).toEqual([]);
    expect(differences("/?query=a&by=pod", "/?query=b&tz=utc")).toEqual([
      { name: "query", theirs: "a", mine: "b" },
      { name: "by", theirs: "pod", mine: null },
      { name: "tz", theirs: null, mine: "utc" },
    ]);
  });

  it("can both be kept", () => {
    expect(freeName("walks", ["walks"])).toBe("walks 2");
    expect(freeName("walks 2", ["walks", "walks 2", "walks 3"])).toBe("walks 4");
  });
});
