import { describe, expect, it } from "vitest";
import { isOwn, MOST_RECENT, recentOf, remembered } from "./recent.ts";

describe("the last addresses", () => {
  it("are twenty, the newest first, each subject once with how it was looked at last", () => {
    let list = recentOf(null);
    for (let i = 0; i < 30; i++) list = remembered(list, `/?query=${i}`, i);
    expect(list).toHaveLength(MOST_RECENT);
    expect(list[0]?.address).toBe("/?query=29");
    list = remembered(list, "/?query=20&focus=main&theme=dark", 40);
    expect(list).toHaveLength(MOST_RECENT);
    expect(list[0]?.address).toBe("/?query=20&focus=main&theme=dark");
    expect(list.filter(({ address }) => address.startsWith("/?query=20"))).toHaveLength(1);
    expect(recentOf(JSON.stringify(list))).toEqual(list);
  });

  it("are none where something else was kept, and never of another site", () => {
    for (const text of ["", "{", "{}", '"x"', "[1]", '[{"address":1,"at":2}]']) expect(recentOf(text)).toEqual([]);
    expect(recentOf('[{"address":"//evil.example/","at":1},{"address":"javascript:alert(1)","at":1}]')).toEqual([]);
    for (const own of ["/", "/?view=nodes", "/explore?x=1"]) expect(isOwn(own), own).toBe(true);
    for (const other of ["//evil.example/", "/\\evil.example", "https://evil.example", "javascript:x", "", "/\t/evil"])
      expect(isOwn(other), other).toBe(false);
    expect(remembered([], `/?query=${"x".repeat(10_000)}`, 1)).toEqual([]);
  });
});
