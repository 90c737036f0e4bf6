import { describe, expect, it } from "vitest";
import { namedValue, namesOf, namesQuery } from "./valueNames.ts";

describe("names of numbered values", () => {
  const id = "a1b2c3d4e5f6".padEnd(64, "0");

  it("of a process are its program's, of kernel threads and unknown ones the command line's or none", () => {
    const names = namesOf("tgid", [
      [21604, "/usr/bin/kubelet", "/usr/bin/kubelet", "/usr/bin/kubelet --v=2"],
      [7, "/bin/sh", "/usr/bin/make", "sh -c make"],
      [2, "", "", "[kthreadd]"],
      [3, "", "", ""],
    ]);
    expect(namedValue("21604", names)).toBe("kubelet (21604)");
    expect(namedValue("7", names)).toBe("sh … make (7)");
    expect(namedValue("2", names)).toBe("[kthreadd] (2)");
    expect(namedValue("3", names)).toBe("3");
    expect(namedValue("21604", null)).toBe("21604");
  });

  it("of a container are its service and pod, where these are more than the number again", () => {
    const names = namesOf("container", [
      [id, "postgres", "postgres", "db-0"],
      ["b".repeat(64), "b".repeat(12), "b".repeat(12), ""],
      ["c".repeat(64), "one", "other", "pod-7"],
    ]);
    expect(namedValue(id, names)).toBe("postgres · db-0 (a1b2c3d4e5f6)");
    expect(namedValue("b".repeat(64), names)).toBe("b".repeat(12));
    expect(namedValue("c".repeat(64), names)).toBe(`pod-7 (${"c".repeat(12)})`);
    expect(namedValue("", names)).toBe("(none)");
  });

  it("are asked for of the days of the range", () => {
    const query = namesQuery("container", Date.UTC(2026, 10, 25, 23), Date.UTC(2026, 10, 26, 1));
    expect(query).toContain("day BETWEEN '2026-11-25' AND '2026-11-26'");
  });
});
