import { describe, expect, it } from "vitest";
import { diffPaint, framePaint, kernelShade, kindOf, layerColours } from "./colour.ts";

describe("colours", () => {
  it("tells inlined frames from their kind, and unknown kinds from none", () => {
    expect(kindOf("native", true)).toBe("inlined");
    expect(kindOf("kernel", false)).toBe("kernel");
    expect(kindOf("something", false)).toBe("unknown");
    expect(framePaint("native", "a", "light")).toEqual(framePaint("native", "a", "light"));
  });

  it("goes from grey to full colour, red for more and blue for less", () => {
    const hue = (fill: string) => Number(/hsl\((\d+)/.exec(fill)?.[1]);
    expect(hue(diffPaint("grew", 1, "light").fill)).toBe(4);
    expect(hue(diffPaint("gone", 0.1, "dark").fill)).toBe(217);
    expect(diffPaint("same", 1, "light")).toEqual(diffPaint("same", 0, "light"));
    expect(diffPaint("grew", 0.01, "light").fill).not.toBe(diffPaint("same", 0, "light").fill);
  });

  it("gives the layers of a chart different colours, the same one to the same name", () => {
    const names = Array.from({ length: 20 }, (_, i) => `service-${i}`);
    expect(new Set(layerColours(names)).size).toBe(20);
    expect([kernelShade("#4c8dff", "light"), kernelShade("#000000", "dark")]).toEqual(["#2c5294", "#6b6b6b"]);
    expect(layerColours(["a"])[0]).toBe(layerColours(["a", "b"])[0]);
    expect(layerColours(["a", null])[1]).not.toBe(layerColours(["a", null])[0]);
  });
});
