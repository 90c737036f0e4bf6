import { describe, expect, it } from "vitest";
import { lazyFile } from "./lazyFile.ts";

/** Lets what was promised come about. */
const rest = () => new Promise((done) => setTimeout(done));

describe("a lazy file", () => {
  it("is loaded once, however often it is asked for, and not before", async () => {
    let imports = 0;
    const file = lazyFile(async () => ++imports);
    await rest();
    expect([imports, file.content.value]).toEqual([0, null]);
    file.load();
    file.load();
    await rest();
    file.load();
    await rest();
    expect([imports, file.content.value, file.failed.value]).toEqual([1, 1, false]);
  });

  it("that could not be had says so until it is asked for again", async () => {
    let isThere = false;
    const file = lazyFile(() => (isThere ? Promise.resolve("here") : Promise.reject(new Error("status of 404"))));
    file.load();
    await rest();
    expect([file.content.value, file.failed.value]).toEqual([null, true]);
    isThere = true;
    file.preload();
    await rest();
    expect([file.content.value, file.failed.value]).toEqual([null, true]);
    file.load();
    expect(file.failed.value).toBe(false);
    await rest();
    expect([file.content.value, file.failed.value]).toEqual(["here", false]);
  });
});
