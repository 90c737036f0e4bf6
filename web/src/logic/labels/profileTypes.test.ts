import { expect, it } from "vitest";
import { isWait } from "../text/unit.ts";
import { typeHint, typeName, typesOf, typesQuery } from "./profileTypes.ts";

it("asks samples for the newest hours and roll-ups for the rest", () => {
  const until = Date.UTC(2026, 10, 22, 12, 30);
  const of = (table: string, from: string) =>
    `SELECT DISTINCT type FROM ${table} WHERE hour >= '${from}' AND hour <= '2026-11-22T12'`;
  const [newest, whole] = ["2026-11-22T10", "2026-11-21T12"];
  expect(typesQuery({ from: until - 86_400_000, until })).toBe(
    [of("samples", newest), of("samples_minute", whole), of("waits", newest), of("waits_minute", whole)].join(
      " UNION ",
    ),
  );
  expect(typesQuery({ from: until - 60_000, until })).toContain("FROM samples WHERE hour >= '2026-11-22T12'");
});

it("names types, CPU time first", () => {
  expect(typesOf([["off_cpu"], ["alloc_space"], ["cpu"], ["cpu"]])).toEqual(["cpu", "off_cpu", "alloc_space"]);
  expect(typesOf([])).toEqual([]);
  expect(typesOf([["wake_up"], ["alloc_space"], ["off_cpu"]])).toEqual(["off_cpu", "wake_up", "alloc_space"]);
  expect(typeName("wake_up")).toBe("Who woke");
  expect(typeHint("wake_up")).toBe("threads that ended waits, by the time that these waits took");
  expect(["cpu", "alloc_space"].map(typeName)).toEqual(["CPU time", "alloc_space"]);
  expect(["cpu", "off_cpu", "run_queue", "wake_up", "wall"].map(isWait)).toEqual([false, true, true, true, false]);
});
