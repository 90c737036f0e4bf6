import { expect, it } from "vitest";
import { ranked } from "./palette.ts";

const ITEMS = [
  { kind: "view", title: "Explore" },
  { kind: "view", title: "Compare", words: "difference baseline" },
  { kind: "action", title: "Compare with previous window" },
  { kind: "action", title: "Times in UTC", words: "zone" },
  { kind: "value", title: 'service="kubelet"' },
  { kind: "function", title: "kubelet_main" },
];
const found = (text: string) => ranked(ITEMS, text, 10).map(({ title }) => title);

it("offers all in their order where nothing is typed, and at most so many", () => {
  expect(found("")).toEqual(ITEMS.map(({ title }) => title));
  expect(ranked(ITEMS, "", 2)).toHaveLength(2);
});

it("finds by any words, in any order and case, the best first", () => {
  expect(found("compare")).toEqual(["Compare", "Compare with previous window"]);
  expect(found("window COMP")).toEqual(["Compare with previous window"]);
  expect(found("kubelet")).toEqual(["kubelet_main", 'service="kubelet"']);
  expect(found("zone")).toEqual(["Times in UTC"]);
  expect(found("value kube")).toEqual(['service="kubelet"']);
  expect(found("difference")).toEqual(["Compare"]);
  expect(found("nothing like it")).toEqual([]);
  expect(found('service="')).toEqual(['service="kubelet"']);
});
