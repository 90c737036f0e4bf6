import { describe, expect, it } from "vitest";
import { namesOf, namesQuery } from "./numberNames.ts";
import { namedValue } from "./valueNames.ts";

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

  it("of a container are its service, pod and image, where these are more than the number again", () => {
    const none = [null, null, null, null];
    const names = namesOf("container", [
      [id, "postgres", "postgres", "db-0", "db-0", ...none],
      ["b".repeat(64), "b".repeat(12), "b".repeat(12), null, null, ...none],
      ["c".repeat(64), "one", "other", "pod-7", "pod-7", ...none],
      ["d".repeat(64), "db", "db", null, null, "r.io:5000/x/postgres:16.2", "r.io:5000/x/postgres:16.2", null, null],
    ]);
    expect(namedValue(id, names)).toBe("postgres · db-0 (a1b2c3d4e5f6)");
    expect(namedValue("b".repeat(64), names)).toBe("b".repeat(12));
    expect(namedValue("c".repeat(64), names)).toBe(`pod-7 (${"c".repeat(12)})`);
    expect(namedValue("d".repeat(64), names)).toBe(`db · postgres:16.2 (${"d".repeat(12)})`);
    expect(namedValue("", names)).toBe("(none)");
  });

  it("of a container that has a name stand behind it; of several pods and images what they have in common", () => {
    const names = namesOf("container", [
      ["cache", "cache", "cache", null, null, "docker.io/library/redis", "docker.io/library/redis", "7.2", "7.2"],
      ["web", "shop", "shop", "shop-1", "shop-2", "nginx:1.24", "nginx:1.25", null, null],
      ["proxy", "mesh", "mesh", "mesh-1", "mesh-1", "envoy@sha256:00ff", "envoy@sha256:00ff", "1", "2"],
      ["other", "a", "b", null, null, "x:1", "y:1", null, null],
      ["plain", "plain", "plain", null, null, null, null, null, null],
    ]);
    expect(["cache", "web", "proxy", "other", "plain"].map((value) => namedValue(value, names))).toEqual([
      "cache · redis:7.2",
      "web · shop · nginx",
      "proxy · mesh · mesh-1 · envoy",
      "other",
      "plain",
    ]);
  });

  it("are asked for of the days of the range", () => {
    const query = namesQuery("container", Date.UTC(2026, 10, 25, 23), Date.UTC(2026, 10, 26, 1));
    expect(query).toContain("day BETWEEN '2026-11-25' AND '2026-11-26'");
  });
});
