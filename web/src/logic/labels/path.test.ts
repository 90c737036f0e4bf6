import { describe, expect, it } from "vitest";
import { isBelow, labelBehind, nextLabel, pathOf, withoutMatcher } from "./path.ts";

describe("the way down into a selection", () => {
  it("has its steps in order, whatever the order of the selector", () => {
    const path = pathOf('{process="kubelet",node=~"db-.*",service="kube"}');
    expect(path?.crumbs.map(({ label, value }) => [label, value])).toEqual([
      ["service", "kube"],
      ["process", "kubelet"],
    ]);
    expect(path?.filters).toEqual([{ label: "node", operator: "=~", value: "db-.*" }]);
  });

  it("knows what was selected above a step, where its siblings are", () => {
    const [first, second] = pathOf('{service="kube",process="kubelet",mode="user"}')?.crumbs ?? [];
    expect(first).toMatchObject({ above: '{mode="user"}', query: '{mode="user",service="kube"}' });
    expect(second).toMatchObject({
      above: '{mode="user",service="kube"}',
      query: '{mode="user",service="kube",process="kubelet"}',
    });
  });

  it("begins with the node, of which another one keeps what both may have", () => {
    const query = '{thread="sync",container="c1",service="kube",pod="kube-x",node="db-1",mode="user"}';
    const path = pathOf(query);
    expect(path?.crumbs.map(({ label }) => label)).toEqual(["node", "service", "pod", "container", "thread"]);
    expect(path?.crumbs[0]).toMatchObject({
      keepsBelow: true,
      above: '{mode="user",service="kube",thread="sync"}',
      query: '{mode="user",node="db-1"}',
      without: '{mode="user",service="kube",pod="kube-x",container="c1",thread="sync"}',
    });
    expect(path?.crumbs[1]).toMatchObject({ keepsBelow: false, above: '{mode="user",node="db-1"}', without: null });
    expect(path?.crumbs[3]).toMatchObject({
      keepsBelow: false,
      above: '{mode="user",node="db-1",service="kube",pod="kube-x"}',
      without: '{mode="user",node="db-1",service="kube",pod="kube-x",thread="sync"}',
    });
    expect(path?.filters).toEqual([{ label: "mode", operator: "=", value: "user" }]);
  });

  it("takes no step by what is not one value", () => {
    expect(pathOf('{service!="kube"}')).toEqual({
      crumbs: [],
      filters: [{ label: "service", operator: "!=", value: "kube" }],
    });
    expect(pathOf("")).toEqual({ crumbs: [], filters: [] });
    expect(pathOf("{service=")).toBeNull();
  });

  it("leads from a service to its threads, past labels that nothing has", () => {
    const all = ["service", "pod", "unit", "process", "thread"];
    expect(nextLabel("service", all)).toBe("pod");
    expect(nextLabel("pod", all)).toBe("process");
    expect(nextLabel("unit", all)).toBe("process");
    expect(nextLabel("process", all)).toBe("thread");
    expect(nextLabel("thread", all)).toBeNull();
    expect(nextLabel("service", ["service", "process", "thread"])).toBe("process");
    expect(nextLabel("node", all)).toBe("service");
    // A container is a step where it was chosen, and none that a click leads to.
    expect(nextLabel("container", all)).toBe("process");
    expect(nextLabel("pod", ["container", ...all])).toBe("process");
    expect(nextLabel("acme.team", all)).toBeNull();
    // Nothing has a pod: perhaps units have.
    expect(labelBehind("pod", all)).toBe("unit");
    expect(labelBehind("thread", all)).toBeNull();
    expect(labelBehind("acme.team", all)).toBeNull();
    expect([isBelow("thread", "pod"), isBelow("pod", "thread"), isBelow("node", "pod")]).toEqual([true, false, false]);
  });

  it("loses one matcher and keeps the rest", () => {
    expect(withoutMatcher('{a="1",b!="2"}', { label: "b", operator: "!=", value: "2" })).toBe('{a="1"}');
  });
});
