import { expect, test } from "vitest";
import { buildText } from "./build.ts";

test("only a server that is slower for its build says so", () => {
  expect(buildText("up")?.name).toBe("first-look build");
  expect(buildText("debug")?.hint).toContain("without optimisation");
  for (const whole of ["release", "dist", ""]) expect(buildText(whole)).toBeNull();
});
