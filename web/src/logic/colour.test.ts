import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  type Change,
  diffPaint,
  framePaint,
  KINDS,
  type Kind,
  kernelShade,
  kindOf,
  kindSwatch,
  kindWord,
  layerColour,
  legendKinds,
  modulePaint,
  type Pair,
  rowPaint,
  type Theme,
} from "./colour.ts";

type Rgb = [number, number, number];

/** Of `#rrggbb` and `hsl(h s% l%)`, parts of 1. */
function rgb(colour: string): Rgb {
  const hex = /^#(..)(..)(..)$/.exec(colour);
  if (hex !== null) return hex.slice(1).map((part) => Number.parseInt(part, 16) / 255) as Rgb;
  const [h, s, l] = (/hsl\(([\d.]+) ([\d.]+)% ([\d.]+)%/.exec(colour) ?? []).slice(1).map(Number) as Rgb;
  const [part, light] = [s / 100, l / 100];
  const f = (n: number) => {
    const k = (n + h / 30) % 12;
    return light - part * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  };
  return [f(0), f(8), f(4)];
}

function hue(colour: string): number {
  const [r, g, b] = rgb(colour);
  const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)];
  const by = most - least;
  const at = most === r ? (g - b) / by : most === g ? 2 + (b - r) / by : 4 + (r - g) / by;
  return (at * 60 + 360) % 360;
}

const away = (a: number, b: number) => Math.min((a - b + 360) % 360, (b - a + 360) % 360);

/** As WCAG 2 defines it. */
function contrast(one: string, other: string): number {
  const light = (colour: string) => {
    const [r, g, b] = rgb(colour).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)) as Rgb;
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [a, b] = [light(one), light(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/** How those see who lack the cones for red, or for green (Machado, Oliveira and Fernandes 2009), in linear light. */
const PROTAN = [
  [0.152286, 1.052583, -0.204868],
  [0.114503, 0.786281, 0.099216],
  [-0.003882, -0.048116, 1.051998],
];
const DEUTAN = [
  [0.367322, 0.860646, -0.227968],
  [0.280085, 0.672501, 0.047413],
  [-0.01182, 0.04294, 0.968881],
];

const linear = (colour: Rgb) => colour.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)) as Rgb;

/** In linear light. */
function simulated(colour: Rgb, sight: typeof PROTAN | null): Rgb {
  const light = linear(colour);
  if (sight === null) return light;
  const sums = sight.map((row) => row.reduce((sum, factor, i) => sum + factor * (light[i] as number), 0));
  return sums.map((v) => Math.min(1, Math.max(0, v))) as Rgb;
}

/** As Ottosson defines it (2020): equal distances look equally far. */
function oklab([r, g, b]: Rgb): Rgb {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

const THEMES: readonly Theme[] = ["light", "dark"];
const PAIRS: readonly Pair[] = ["red-blue", "orange-blue"];
const CHANGES: readonly Change[] = ["grew", "shrank", "new", "gone"];
const NAMES = Array.from({ length: 150 }, (_, i) => `service-${(i * 2_654_435_761) % 1e9}`);
const STRENGTHS = Array.from({ length: 26 }, (_, i) => i / 25);

const sheetOf = (name: string) => readFileSync(new URL(`../style/${name}.css`, import.meta.url), "utf8");
const [BASE_SHEET, CONTRAST_SHEET] = [sheetOf("base"), sheetOf("contrast")];

/** A colour of the page's style, by theme. */
function styled(name: string, theme: Theme, sheet = BASE_SHEET): string {
  const [light = "", dark = ""] = sheet.split(':root[data-theme="dark"]');
  const of = (part: string) => new RegExp(`--${name}: (#[0-9a-f]{6});`).exec(part)?.[1];
  return (theme === "dark" ? of(dark) : undefined) ?? of(light) ?? "";
}

/** The same where the system asks for more contrast. */
const raised = (name: string, theme: Theme) => styled(name, theme, CONTRAST_SHEET);

describe("colours", () => {
  it("tells inlined frames from their kind, and unknown kinds from none", () => {
    expect(kindOf("native", true)).toBe("inlined");
    expect(kindOf("kernel", false)).toBe("kernel");
    expect(kindOf("something", false)).toBe("unknown");
    expect(framePaint("native", "a", "light")).toEqual(framePaint("native", "a", "light"));
  });

  it("gives each language a word, and a function that was inlined the colour of its language", () => {
    expect((["jvm", "cpython", "v8js", "ruby", "php", "jit", "native"] as const).map(kindWord)).toEqual([
      "Java",
      "Python",
      "Node.js",
      "Ruby",
      "PHP",
      "JIT",
      "native",
    ]);
    expect(kindOf("jvm", true)).toBe("jvm");
    expect(kindOf("toString", false)).toBe("unknown");
    const words = KINDS.map(kindWord);
    expect(new Set(words).size).toBe(words.length);
  });

  it("names in the legend what a picture has, and nothing else", () => {
    const frame = (kind: string, inlined = false) => ({ kind, inlined });
    expect(
      legendKinds([frame("cpython"), frame("kernel"), frame("native", true), frame("root"), frame("label")]),
    ).toEqual(["kernel", "cpython", "inlined"]);
    expect(legendKinds([frame("jvm", true), frame("odd")])).toEqual(["jvm", "unknown"]);
    expect(legendKinds([])).toEqual([]);
  });

  it("tells kinds apart, also for those who see no red or no green", () => {
    // What stands in one stack with native code and the kernel is further apart than what seldom meets.
    const main: readonly Kind[] = ["kernel", "native", "jvm", "cpython", "v8js", "ruby", "php"];
    for (const theme of THEMES)
      for (const sight of [null, PROTAN, DEUTAN]) {
        const seen = new Map<Kind, Rgb>(
          KINDS.map((kind) => [kind, oklab(simulated(rgb(kindSwatch(kind, theme)), sight))] as const),
        );
        const apart = (kinds: readonly Kind[]) =>
          Math.min(
            ...kinds.flatMap((a, i) =>
              kinds
                .slice(i + 1)
                .map((b) => Math.hypot(...(seen.get(a) ?? []).map((v, at) => v - (seen.get(b)?.[at] ?? 0)))),
            ),
          );
        expect(apart(main)).toBeGreaterThan(sight === null ? 0.09 : 0.05);
        expect(apart(KINDS)).toBeGreaterThan(sight === null ? 0.04 : 0.025);
      }
  });

  it("lets frames of each kind be seen on the page's ground", () => {
    for (const theme of THEMES)
      for (const kind of KINDS) expect(contrast(kindSwatch(kind, theme), styled("panel", theme))).toBeGreaterThan(1.25);
  });

  it("tells rows of labels from all frames by lightness, without a hue, and legibly", () => {
    for (const theme of THEMES) {
      const { fill, text } = rowPaint(theme);
      expect(contrast(fill, text)).toBeGreaterThan(4.5);
      const [r, g, b] = rgb(fill);
      expect(Math.max(r, g, b) - Math.min(r, g, b)).toBeLessThan(0.12);
      expect(modulePaint("label", "service", theme)).toEqual(rowPaint(theme));
      expect(framePaint("label", "service kubelet", theme)).toEqual(rowPaint(theme));
      const frames = [
        ...NAMES.map((name) => modulePaint("native", name, theme)),
        ...KINDS.map((kind) => framePaint(kind, "a", theme)),
        ...PAIRS.map((pair) => diffPaint("same", 0, theme, pair)),
      ];
      for (const frame of frames) expect(contrast(fill, frame.fill)).toBeGreaterThan(2);
    }
  });

  it("goes from grey to full colour, one hue for more and another for less", () => {
    expect(hue(diffPaint("grew", 1, "light").fill)).toBeCloseTo(4, 0);
    expect(hue(diffPaint("gone", 0.1, "dark").fill)).toBeCloseTo(217, 0);
    expect(hue(diffPaint("new", 1, "dark", "orange-blue").fill)).toBeCloseTo(30, 0);
    expect(diffPaint("same", 1, "light")).toEqual(diffPaint("same", 0, "light", "orange-blue"));
    for (const pair of PAIRS)
      for (const theme of THEMES)
        expect(diffPaint("grew", 0.01, theme, pair).fill).not.toBe(diffPaint("same", 0, theme, pair).fill);
  });

  it("gives a name one colour in any company", () => {
    const all = NAMES.map((name) => layerColour(name));
    const backwards = [...NAMES].reverse().map((name) => layerColour(name));
    expect(backwards.reverse()).toEqual(all);
    for (const name of NAMES) {
      expect(layerColour(name)).toBe(layerColour(name));
      // As a layer and as a frame, in both themes, it has the same hue.
      for (const theme of THEMES)
        expect(away(hue(modulePaint("native", name, theme).fill), hue(layerColour(name)))).toBeLessThan(12);
      expect(modulePaint("kernel", name, "light")).toEqual(modulePaint("interpreted", name, "light"));
    }
    // Names use most of the 60 hues and shades.
    expect(new Set(all).size).toBeGreaterThan(45);
    expect(layerColour(null)).not.toBe(layerColour("others"));
    expect([kernelShade("#4c8dff", "light"), kernelShade("#000000", "dark")]).toEqual(["#2c5294", "#6b6b6b"]);
  });

  it("keeps names apart in hue from what a difference takes", () => {
    const changed = PAIRS.flatMap((pair) => CHANGES.map((change) => hue(diffPaint(change, 1, "light", pair).fill)));
    const own = NAMES.flatMap((name) => [
      layerColour(name),
      ...THEMES.map((theme) => modulePaint("native", name, theme).fill),
    ]);
    const hues = [...new Set(own)].map(hue);
    expect(Math.min(...hues.flatMap((one) => changed.map((other) => away(one, other))))).toBeGreaterThan(20);
  });
});

describe("contrast", () => {
  it("lets every text be read on its frame, in both themes and with both pairs", () => {
    const worst = (paints: { fill: string; text: string }[]) =>
      Math.min(...paints.map(({ fill, text }) => contrast(fill, text)));
    for (const theme of THEMES) {
      expect(worst(NAMES.map((name) => modulePaint("native", name, theme)))).toBeGreaterThanOrEqual(4.5);
      expect(worst(KINDS.flatMap((kind) => NAMES.map((name) => framePaint(kind, name, theme))))).toBeGreaterThanOrEqual(
        4.5,
      );
      for (const pair of PAIRS) {
        const paints = [...CHANGES, "same" as const].flatMap((change) =>
          STRENGTHS.map((strength) => diffPaint(change, strength, theme, pair)),
        );
        expect(worst(paints)).toBeGreaterThanOrEqual(4.5);
      }
    }
  });

  it("lets layers and the outlines of A and B be seen on the page's ground", () => {
    for (const theme of THEMES) {
      const ground = styled("panel", theme);
      for (const value of [...NAMES, null]) {
        expect(contrast(layerColour(value), ground)).toBeGreaterThanOrEqual(3);
        expect(contrast(kernelShade(layerColour(value), theme), ground)).toBeGreaterThanOrEqual(3);
      }
      for (const side of ["side-a", "side-b"]) {
        expect(contrast(styled(side, theme), ground)).toBeGreaterThanOrEqual(7);
        expect(contrast(styled(side, theme), styled("on-side", theme))).toBeGreaterThanOrEqual(4.5);
        // Dark outlines have no hue that could be a layer's, or that of a change.
        const [r, g, b] = rgb(styled(side, theme));
        expect(Math.max(r, g, b) - Math.min(r, g, b)).toBeLessThan(0.12);
      }
    }
  });

  it("is more where the system asks for it: lines, dim text, focus rings and what has a hue, on every ground", () => {
    for (const theme of THEMES) {
      const grounds = ["bg", "panel", "raised", "sunk"].map((name) => styled(name, theme));
      const worst = (name: string) => Math.min(...grounds.map((ground) => contrast(raised(name, theme), ground)));
      expect(worst("dim")).toBeGreaterThanOrEqual(10);
      for (const line of ["line", "hatch"]) expect(worst(line)).toBeGreaterThanOrEqual(4.5);
      expect(worst("grid")).toBeGreaterThanOrEqual(3);
      for (const name of ["accent", "bad", "warn", "grew", "shrank"]) expect(worst(name)).toBeGreaterThanOrEqual(7);
      expect(contrast(raised("accent", theme), styled("accent-soft", theme))).toBeGreaterThanOrEqual(7);
      expect(contrast(raised("accent", theme), styled("on-accent", theme))).toBeGreaterThanOrEqual(7);
      // The ring is drawn in the colour of the text.
      expect(Math.min(...grounds.map((ground) => contrast(styled("text", theme), ground)))).toBeGreaterThanOrEqual(10);
    }
  });
});
