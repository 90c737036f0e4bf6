import { describe, expect, it } from "vitest";
import { lazyFile } from "./lazyFile.ts";

/** Lets what was promised come about. */
const rest = () => new Promise((done) => setTimeout(done));

describe("a lazy file", () => {
  it("is fetched once, however often it is asked for, and not before", async () => {
    let fetches = 0;
    const file = lazyFile(async () => ++fetches);
    await rest();
    expect([fetches, file.content.value]).toEqual([0, null]);
    file.fetch();
    file.fetch();
    await rest();
    file.fetch();
    await rest();
    expect([fetches, file.content.value, file.failed.value]).toEqual([1, 1, false]);
  });

  it("that could not be had says so until it is asked for again", async () => {
    let isThere = false;
    const file = lazyFile(() => (isThere ? Promise.resolve("here") : Promise.reject(new Error("status of 404"))));
    file.fetch();
    await rest();
    expect([file.content.value, file.failed.value]).toEqual([null, true]);
    isThere = true;
    file.prefetch();
    await rest();
    expect([file.content.value, file.failed.value]).toEqual([null, true]);
    file.fetch();
    expect(file.failed.value).toBe(false);
    await rest();
    expect([file.content.value, file.failed.value]).toEqual(["here", false]);
  });
});
