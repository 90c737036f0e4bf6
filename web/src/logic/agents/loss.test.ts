import { describe, expect, it } from "vitest";
import { idleText, lossOf } from "./loss.ts";

describe("loss", () => {
  it("says how much CPU time no tick told of, beside what was idle", () => {
    expect(idleText({ idle_share: 0.25 })).toBe("25.0\u202f%");
    expect(idleText({ idle_share: 0, missed_share: 0.5 })).toBe("0\u202f%, 50.0\u202f% no timer ticks");
    expect(idleText({ idle_share: 0.98, missed_share: 0.02 }), "phase, or little stolen").toBe("98.0\u202f%");
    expect(idleText({ idle_share: null, missed_share: null })).toBe("");
  });

  it("sums what was lost and names each cause that lost anything", () => {
    const loss = lossOf({ ring_full: 12_345, disk_full: 0, unsent: 2 });
    expect(loss.samples).toBe(12_347);
    expect(loss.brief).toBe("ring_full 12.3\u202fk, unsent 2");
    expect(loss.text).toBe("ring_full: 12\u202f345, unsent: 2");
    expect(lossOf({ ring_full: 0 })).toEqual(lossOf(undefined));
  });
});
