import { describe, expect, it } from "vitest";
import { sourceLink, type Template, templateFault, templateFor, templatesOf } from "./template.ts";

const GITHUB = "https://github.com/acme/shop/blob/{commit}/{file}#L{line}";
const place = { module: "/opt/bin/shop", file: "src/walk.go", line: 42, version: "v15" };
const link = (url: string, more: Partial<typeof place> = {}, commit = "") =>
  sourceLink({ module: "*", url, commit }, { ...place, ...more });

describe("a template of source links", () => {
  it("is filled with what is known of the frame", () => {
    expect(link(GITHUB)).toBe("https://github.com/acme/shop/blob/v15/src/walk.go#L42");
    expect(link(GITHUB, {}, "0123abc")).toBe("https://github.com/acme/shop/blob/0123abc/src/walk.go#L42");
    expect(link("http://code/{module}/{version}?f={file}&l={line}", { line: 0 })).toBe(
      "http://code/shop/v15?f=src/walk.go&l=1",
    );
    expect(link(GITHUB, { version: "" })).toBeNull();
    expect(link(GITHUB, { file: "" })).toBeNull();
  });

  it("takes https and http alone, with a host that nothing can change", () => {
    for (const bad of [
      "javascript:alert('{file}')",
      "data:text/html,{file}",
      "//evil/{file}",
      "https://{module}/{file}",
      "https://a@{module}.b/{file}",
      "https://user@host/{file}",
      "https:/{file}",
      "https://host\\{file}",
      "https://host/{path}",
      "https://host/x",
      " https://host/{file}",
    ]) {
      expect(templateFault(bad), bad).not.toBe("");
      expect(link(bad), bad).toBeNull();
    }
    expect(templateFault(GITHUB)).toBe("");
  });

  it("encodes names that mean harm: they stay parts of the path", () => {
    const href = (file: string) => new URL(link(GITHUB, { file }) ?? "");
    for (const file of [
      "../../../../evil/x",
      "..\\..\\evil",
      "a?b=c#d",
      "javascript:alert(1)",
      '"><script>alert(1)</script>',
      "//evil.example/x",
      "%2e%2e/%2e%2e/x",
      "a\nb\u202ec",
      "\ud800",
      "./././..",
    ]) {
      const made = link(GITHUB, { file });
      if (made === null) continue;
      const url = href(file);
      expect(url.origin).toBe("https://github.com");
      expect(url.pathname.startsWith("/acme/shop/blob/v15/"), made).toBe(true);
      expect(url.search).toBe("");
      expect(url.hash).toBe("#L42");
      expect(made).not.toMatch(/["'<>\s]/);
    }
    expect(link(GITHUB, { version: ".." })).toBeNull();
    expect(new URL(link(GITHUB, { version: "a/../../b" }) ?? "").pathname).toContain("/blob/a%2F..%2F..%2Fb/");
  });

  it("is that of the first module that fits, by its name, path or pattern", () => {
    const of = (module: string): Template => ({ module, url: module, commit: "" });
    const templates = [of("kube*"), of("/opt/*"), of("libc.so.6"), of("*")];
    expect(templateFor(templates, "/usr/bin/kubelet")?.module).toBe("kube*");
    expect(templateFor(templates, "/opt/bin/shop")?.module).toBe("/opt/*");
    expect(templateFor(templates, "/lib/libc.so.6")?.module).toBe("libc.so.6");
    expect(templateFor(templates, "x")?.module).toBe("*");
    expect(templateFor(templates.slice(0, 1), "a.kube")).toBeNull();
    expect(templateFor([of("a.c")], "abc")).toBeNull();
  });

  it("is read back from what a browser kept", () => {
    const list = [{ module: "*", url: GITHUB, commit: "" }];
    expect(templatesOf(JSON.stringify(list))).toEqual(list);
    for (const text of [null, "", "{}", "[1]", '[{"module":1}]']) expect(templatesOf(text)).toEqual([]);
  });
});
