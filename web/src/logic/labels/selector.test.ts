import { describe, expect, it } from "vitest";
import { complete, completingAt, functionsAmong, meanings, suggestions } from "./completing.ts";
import {
  againstRest,
  andMatcher,
  anyOf,
  formatSelector,
  parseSelector,
  quote,
  tidySelector,
  withMatcher,
  wordOf,
} from "./selector.ts";

describe("selectors", () => {
  it("reads what it writes", () => {
    const matchers = [
      { label: "service", operator: "=", value: 'a "b" \\ c\n' },
      { label: "node", operator: "=~", value: "db-.*" },
      { label: "unit", operator: "!=", value: "" },
    ] as const;
    expect(parseSelector(formatSelector(matchers))).toEqual(matchers);
    expect(parseSelector('service = "x", node!~"y"')).toHaveLength(2);
    expect(parseSelector("{}")).toEqual([]);
    expect(parseSelector('{service="x"')).toBeNull();
    expect(parseSelector("{service=x}")).toBeNull();
    expect(quote("a\\b")).toBe('"a\\\\b"');
  });

  it("adds braces to what was typed, and nothing to nothing", () => {
    expect(tidySelector(' service="x" ')).toBe('{service="x"}');
    expect(tidySelector("{ }")).toBe("");
    expect(tidySelector("{broken")).toBe("{broken");
  });

  it("replaces a label's matcher by a click, and collects exclusions", () => {
    const one = withMatcher('{service="a",node="n"}', { label: "service", operator: "=", value: "b" });
    expect(one).toBe('{node="n",service="b"}');
    const two = withMatcher('{service!="a"}', { label: "service", operator: "!=", value: "b" });
    expect(two).toBe('{service!="a",service!="b"}');
    expect(withMatcher(two, { label: "service", operator: "!=", value: "b" })).toBe(two);
    expect(withMatcher("{broken", { label: "a", operator: "=", value: "b" })).toBe('{a="b"}');
  });
});

describe("selectors made by a click", () => {
  it("sets a value against the rest, whatever was chosen of its label before", () => {
    expect(againstRest('{mode="user",pod="b"}', "pod", "a")).toEqual({
      query: '{mode="user",pod="a"}',
      baseQuery: '{mode="user",pod!="a"}',
    });
  });

  it("stands beside other matchers, and takes values as they are", () => {
    expect(andMatcher('{mode="user"}', { label: "mode", operator: "=", value: "kernel" })).toBe(
      '{mode="user",mode="kernel"}',
    );
    expect(andMatcher("{broken", { label: "mode", operator: "=", value: "kernel" })).toBeNull();
    expect(anyOf(["a.b", "", "x|y", "(c)"])).toBe("a\\.b||x\\|y|\\(c\\)");
  });
});

describe("completion", () => {
  const type = (text: string) => {
    const caret = text.indexOf("|");
    const plain = text.replace("|", "");
    return { plain, caret, at: completingAt(plain, caret) };
  };

  it("knows what stands at the caret", () => {
    expect(type("|").at).toMatchObject({ what: "label", prefix: "" });
    expect(type("{ser|").at).toMatchObject({ what: "label", prefix: "ser", from: 1 });
    expect(type('{service="ku|"}').at).toMatchObject({ what: "value", label: "service", prefix: "ku", closed: true });
    expect(type('{service="a",no|}').at).toMatchObject({ what: "label", prefix: "no" });
    expect(type("{service |}").at).toMatchObject({ what: "operator", label: "service" });
    expect(type("{service!|}").at).toMatchObject({ what: "operator", label: "service", prefix: "!" });
    expect(type("{service =|}").at).toMatchObject({ what: "operator", label: "service", prefix: "=" });
    expect(type('{service=~"a|').at).toMatchObject({ what: "value", closed: false });
  });

  it("leads from nothing to a whole selector", () => {
    const label = type("se|");
    const one = complete(label.plain, label.caret, label.at, "service");
    expect(one).toEqual({ text: '{service="', caret: 10 });
    const two = complete(one.text, one.caret, completingAt(one.text, one.caret), 'ku"be');
    expect(two.text).toBe('{service="ku\\"be"}');
    expect(parseSelector(two.text)).toEqual([{ label: "service", operator: "=", value: 'ku"be' }]);
  });

  it("replaces a value in the middle and leaves the rest", () => {
    const value = type('{service="ku|belet",node="n"}');
    expect(complete(value.plain, value.caret, value.at, "kube").text).toBe('{service="kube",node="n"}');
  });

  it("offers what begins so before what contains it", () => {
    expect(suggestions(["xnode", "node", "Node2", "pod"], "node", 9)).toEqual(["node", "Node2", "xnode"]);
    expect(suggestions(["a", "b", "c"], "", 2)).toEqual(["a", "b"]);
  });
});

describe("a word instead of a selector", () => {
  const hits = [
    { label: "process", value: "kubelet" },
    { label: "acme.team", value: "kubelet" },
    { label: "service", value: "kubelet" },
    { label: "tgid", value: "12" },
    { label: "function", value: "kubelet" },
    { label: "node", value: "kube-node" },
    { label: "service", value: "kube-proxy" },
    { label: "service", value: "Postgres" },
  ];
  /** As the server finds them. */
  const found = (word: string) => hits.filter(({ value }) => value.toLowerCase().includes(word.toLowerCase()));
  const meant = (word: string) => meanings(word, found(word), 20).map(({ label, value }) => `${label}=${value}`);

  it("is text without braces, operators and quotes", () => {
    expect(wordOf(" kubelet ")).toBe("kubelet");
    expect(wordOf("my service")).toBe("my service");
    for (const text of ["", " ", "{", "{}", "service=", 'service="a"', "service=~", "mode!", "mode!~"])
      expect(wordOf(text)).toBeNull();
  });

  it("means values that it is, the most usual label first, and else those that contain it", () => {
    expect(meant("kubelet")).toEqual(["service=kubelet", "process=kubelet", "acme.team=kubelet"]);
    expect(meant("postgres")).toEqual(["service=Postgres"]);
    expect(meant("kube-")).toEqual(["node=kube-node", "service=kube-proxy"]);
    expect(meant("nobody")).toEqual([]);
    expect(meanings("e", hits, 2)).toHaveLength(2);
  });

  it("means neither a number of something nor a function", () => {
    expect(meant("12")).toEqual([]);
    expect(meanings("kubelet", [{ label: "function", value: "kubelet" }], 9)).toEqual([]);
  });

  it("finds functions, each name once", () => {
    const hits = [
      { label: "thread", value: "walker" },
      { label: "function", value: "walk", module: "a.so" },
      { label: "function", value: "filepath.Walk", module: "kubelet" },
      { label: "function", value: "walk", module: "b.so" },
    ];
    expect(functionsAmong(hits)).toEqual(["walk", "filepath.Walk"]);
  });
});

describe("labels that are attributes' names", () => {
  it("are read, kept as they are written, and completed", () => {
    const text = '{acme.team="a",k8s.cluster/zone-1=~"b.*","team"!="c"}';
    expect(parseSelector(text)?.map(({ label }) => label)).toEqual(["acme.team", "k8s.cluster/zone-1", '"team"']);
    expect(formatSelector(parseSelector(text) ?? [])).toBe(text);
    const typed = "{acme.te";
    const at = completingAt(typed, typed.length);
    expect(at).toMatchObject({ what: "label", prefix: "acme.te" });
    expect(complete(typed, typed.length, at, "acme.team").text).toBe('{acme.team="');
    expect(completingAt('{acme.team="x', 13)).toMatchObject({ what: "value", label: "acme.team", prefix: "x" });
  });
});
