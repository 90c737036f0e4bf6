import { describe, expect, it } from "vitest";
import { accountOf, refusalsOf } from "./account.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");

describe("the account of a node", () => {
  const of = (taken: number, stored: number, lost: Record<string, number>) =>
    plain(accountOf({ samples_taken: taken, samples_stored: stored, samples_lost: lost }));

  it("adds up", () => {
    expect(of(1_010, 1_000, { ring_full: 7, unsent: 3 })).toBe("1 010 taken = 1 000 stored + 10 lost");
  });

  it("says what is missing", () => {
    expect(of(1_010, 1_000, {})).toBe(
      "1 010 taken = 1 000 stored + 0 lost + 10 on their way, or older than the retention",
    );
  });
});

describe("refusals", () => {
  it("are summed, with a line for each reason", () => {
    const refusals = [
      { reason: "bad_profile", count: 3, last: 0, message: "stack_table[9]" },
      { reason: "too_large", count: 1, last: 1000, message: "larger than 32" },
    ];
    expect(refusalsOf(refusals)).toEqual({
      count: 4,
      text:
        "bad_profile: 3, last 1970-01-01T00:00:00.000Z: stack_table[9]\n" +
        "too_large: 1, last 1970-01-01T00:00:01.000Z: larger than 32",
    });
    expect(refusalsOf(undefined)).toEqual({ count: 0, text: "" });
  });
});
