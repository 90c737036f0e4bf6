import { describe, expect, it } from "vitest";
import { chosenRows, type Grouped, groupBehind, rowChoices, rowsOf } from "./rows.ts";

const state = (part: Partial<Grouped> = {}): Grouped => ({
  view: "explore",
  group: "",
  query: "",
  focus: "",
  frame: "",
  open: "",
  transform: "",
  ...part,
});
const labels = (part: Partial<Grouped>) => rowsOf(state(part)).labels;

describe("rows of labels", () => {
  it("are the services of a window where nobody chose and no filter picks one", () => {
    expect(rowsOf(state())).toEqual({ labels: ["service"], isOwn: true });
    expect(labels({ view: "heatmap" })).toEqual(["service"]);
    expect(labels({ query: '{process=~"a.*"}' })).toEqual(["service"]);
    expect(labels({ query: '{service=~"a|b"}' })).toEqual(["service"]);
    expect(labels({ query: '{service="a"}' })).toEqual([]);
    expect(labels({ query: "{what is this" })).toEqual([]);
  });

  it("divide no comparison that nobody divided", () => {
    expect(labels({ view: "compare" })).toEqual([]);
    expect(labels({ view: "compare", group: "auto" })).toEqual([]);
    expect(labels({ view: "compare", group: "service,process" })).toEqual(["service", "process"]);
  });

  it("are none in an address that names frames and no rows, as links did before there were rows", () => {
    for (const named of [{ focus: "main;walk" }, { frame: "#" }, { open: "a.b" }, { transform: "invert" }])
      expect(labels(named)).toEqual([]);
    expect(labels({ focus: "main", group: "auto" })).toEqual(["service"]);
    expect(labels({ focus: "main", group: "node" })).toEqual(["node"]);
  });

  it("are at most four, each once", () => {
    expect(labels({ group: "a,b,a,,c,d,e" })).toEqual(["a", "b", "c", "d"]);
    expect(labels({ group: "," })).toEqual([]);
    expect(labels({ group: "none" })).toEqual([]);
  });

  it("change with no step that names a frame, or no longer does", () => {
    const steps: [Grouped, Grouped][] = [
      [state(), state({ focus: "service=a" })],
      [state(), state({ transform: "merge" })],
      [state({ focus: "main" }), state()],
      [state({ query: '{service="a"}' }), state({ query: '{service="a"}', focus: "main" })],
      [state({ view: "compare" }), state({ view: "compare", focus: "main" })],
      [state({ group: "node" }), state({ group: "node", focus: "node=a" })],
      [state({ focus: "a" }), state({ focus: "b" })],
    ];
    for (const [before, next] of steps)
      expect(rowsOf({ ...next, group: groupBehind(before, next) })).toEqual(rowsOf(before));
    expect(groupBehind(state(), state({ focus: "main" }))).toBe("auto");
    expect(groupBehind(state({ focus: "main" }), state())).toBe("none");
    // Where there are no rows anyway, nothing has to be written.
    const one = state({ query: '{service="a"}' });
    expect(groupBehind(one, { ...one, focus: "main" })).toBe("");
  });

  it("can be chosen of the labels that there are", () => {
    const known = ["node", "service", "process", "version"];
    const values = (of: Grouped) => rowChoices(of, known).map(([value]) => value);
    expect(values(state())).toEqual([
      ...["auto", "none", "service", "service,process", "process", "node", "node,service", "version"],
    ]);
    expect(values(state({ view: "compare" }))[0]).toBe("none");
    expect(values(state({ group: "gone,process" }))).toContain("gone,process");
    expect(chosenRows(state())).toBe("auto");
    expect(chosenRows(state({ focus: "main" }))).toBe("none");
    expect(chosenRows(state({ group: "service,process" }))).toBe("service,process");
  });
});
