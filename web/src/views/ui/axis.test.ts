import { afterEach, describe, expect, it } from "vitest";
import type { Window } from "../../logic/time/time.ts";
import { paintTimeAxis } from "./axis.ts";

const own = process.env.TZ;
afterEach(() => {
  if (own === undefined) Reflect.deleteProperty(process.env, "TZ");
  else process.env.TZ = own;
});

/** Pixels of each letter on a canvas that draws nothing. */
const LETTER = 6;
const AXIS = { most: 6, left: 40, right: 400, top: 0, zoneLeft: 2, air: 6 };

/** What is written on an axis, in its order, and from where to where. */
function written(range: Window): { text: string; left: number; right: number }[] {
  const texts: { text: string; left: number; right: number }[] = [];
  const widthOf = (text: string) => text.length * LETTER;
  const context = {
    textAlign: "left" as CanvasTextAlign,
    textBaseline: "top" as CanvasTextBaseline,
    measureText: (text: string): { width: number } => ({ width: widthOf(text) }),
    fillText: (text: string, x: number): void => {
      const left = context.textAlign === "center" ? x - widthOf(text) / 2 : x;
      texts.push({ text, left, right: left + widthOf(text) });
    },
  };
  paintTimeAxis(context as unknown as CanvasRenderingContext2D, { ...AXIS, range });
  return texts;
}

describe("a time axis", () => {
  it("says its zone first, and writes nothing over it or beyond its own end", () => {
    for (const [name, day, zone] of [
      ["Europe/Berlin", "2026-10-25", "UTC+2"],
      ["America/New_York", "2026-03-08", "UTC-5"],
      ["Australia/Lord_Howe", "2026-10-04", "UTC+10:30"],
      ["UTC", "2026-11-27", "UTC"],
    ] as const) {
      process.env.TZ = name;
      const from = new Date(`${day}T00:00:00`).getTime();
      // Most have a label at both ends, of which a half would stand beside the axis.
      for (const length of [60_000, 3_600_000, 4 * 3_600_000, 6 * 86_400_000]) {
        const [first, ...labels] = written({ from, until: from + length });
        expect(first?.text).toBe(zone);
        expect(labels.length).toBeGreaterThanOrEqual(2);
        for (const { text, left, right } of labels) {
          expect(left, text).toBeGreaterThanOrEqual((first?.right ?? 0) + AXIS.air);
          expect(right, text).toBeLessThanOrEqual(AXIS.right + AXIS.air);
        }
      }
    }
  });
});
