import { describe, expect, it } from "vitest";
import { textTable } from "./textTable.ts";

describe("a table of a file", () => {
  it("has a column for all that any row is told of, in the order of the one that is told most", () => {
    const table = textTable("2 agents", "Node", [
      {
        name: "sender",
        told: [
          ["State", "other sender"],
          ["Stored", "7"],
        ],
      },
      {
        name: "rack1",
        told: [
          ["State", "live"],
          ["Rate", "20 Hz"],
          ["Stored", "9"],
          ["Agent limits hit", "tables_late: 2\nflux: 1"],
        ],
      },
    ]);
    expect(table.head).toEqual(["Node", "State", "Rate", "Stored", "Agent limits hit"]);
    expect(table.rows).toEqual([
      ["sender", "other sender", "–", "7", "–"],
      ["rack1", "live", "20 Hz", "9", "tables_late: 2; flux: 1"],
    ]);
  });

  it("holds a bounded number of rows, and knows how many there are", () => {
    const rows = Array.from({ length: 9 }, (_, i) => ({ name: `n${i}`, told: [] }));
    const { rows: told, all } = textTable("9 agents", "Node", rows, 4);
    expect([told.map(([name]) => name), all]).toEqual([["n0", "n1", "n2", "n3"], 9]);
  });
});
