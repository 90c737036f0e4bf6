import { describe, expect, it } from "vitest";
import { columnsFor } from "./columns.ts";

const columns = [
  { key: "name", width: { beside: "minmax(120px, 1fr)", alone: "minmax(120px, 3fr)" } },
  { key: "low", width: { beside: "132px", from: 640 } },
  { key: "total", width: { beside: "108px", phone: "84px" } },
];

describe("the columns of a table", () => {
  it("have a track each, by where the table stands", () => {
    expect(columnsFor(columns, "beside", 700).tracks).toBe("minmax(120px, 1fr) 132px 108px");
    expect(columnsFor(columns, "alone", 1_400).tracks).toBe("minmax(120px, 3fr) 132px 108px");
    expect(columnsFor(columns, "phone", 360).tracks).toBe("minmax(120px, 1fr) 84px");
  });

  it("are fewer where there is no room, and so are the tracks", () => {
    const narrow = columnsFor(columns, "beside", 639);
    expect(narrow.shown.map(({ key }) => key)).toEqual(["name", "total"]);
    expect(narrow.tracks).toBe("minmax(120px, 1fr) 108px");
    expect(columnsFor(columns, "beside", 640).shown).toEqual(columns);
  });
});
