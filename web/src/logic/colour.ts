/**
 * Colours. Frames take the hue of their kind and a shade by their module, so that one library reads as one surface;
 * a difference takes red and blue by the strength that the server computed. Every colour comes with a text colour that
 * is readable on it. Out: CSS colours that a canvas takes.
 */

export type Theme = "light" | "dark";

export interface Paint {
  fill: string;
  text: string;
}

/** What the legend names. `inlined` is a native (or other) frame that the compiler dissolved in its caller. */
export const KINDS = ["kernel", "native", "interpreted", "jit", "inlined", "unknown"] as const;
export type Kind = (typeof KINDS)[number] | "root" | "trimmed";

type Hsl = readonly [hue: number, saturation: number, lightness: number];

/** The middle of each kind's shades. */
const BASE: Record<Kind, Record<Theme, Hsl>> = {
  kernel: { light: [27, 86, 66], dark: [25, 62, 42] },
  native: { light: [212, 72, 70], dark: [214, 50, 43] },
  interpreted: { light: [146, 42, 62], dark: [150, 36, 34] },
  jit: { light: [275, 52, 74], dark: [276, 34, 46] },
  inlined: { light: [206, 62, 83], dark: [207, 34, 34] },
  unknown: { light: [220, 8, 74], dark: [220, 6, 36] },
  root: { light: [222, 14, 86], dark: [222, 12, 25] },
  trimmed: { light: [220, 8, 84], dark: [220, 6, 28] },
};

/** What the themes do to all kinds alike: percent of lightness from one shade to the next, and the text. */
const TONE: Record<Theme, number> = { light: 2.1, dark: 1.6 };
const TEXT: Record<Theme, string> = { light: "#10141c", dark: "#f3f5fa" };

type Span = readonly [start: number, more: number];

/**
 * A difference: grey, and per cent at no strength with what full strength adds; `white` is the strength of white text.
 */
const RAMP: Record<Theme, { grey: Paint; saturation: Span; lightness: Span; white: number }> = {
  light: {
    grey: { fill: "hsl(220 10% 86%)", text: "#1b2130" },
    saturation: [40, 42],
    lightness: [86, -33],
    white: 0.78,
  },
  dark: { grey: { fill: "hsl(220 8% 27%)", text: "#e4e8f1" }, saturation: [28, 42], lightness: [27, 20], white: 0 },
};

const SHADES = 7;

export function kindOf(kind: string, inlined: boolean): Kind {
  if (kind === "root" || kind === "trimmed") return kind;
  if (inlined) return "inlined";
  return (KINDS as readonly string[]).includes(kind) ? (kind as Kind) : "unknown";
}

const hsl = ([hue, saturation, lightness]: Hsl) => `hsl(${hue} ${saturation}% ${lightness}%)`;

/** The colour of a frame in one window; `seed` is its module and function, whose shades differ. */
export function framePaint(kind: Kind, seed: string, theme: Theme): Paint {
  const [hue, saturation, lightness] = BASE[kind][theme];
  const flat = kind === "root" || kind === "trimmed" || kind === "unknown";
  const shade = flat ? 0 : (textHash(seed) % SHADES) - (SHADES - 1) / 2;
  return { fill: hsl([hue + shade * 1.6, saturation, lightness + shade * TONE[theme]]), text: TEXT[theme] };
}

/** Hues of modules: told apart by lightness too, for those who see fewer hues. */
const MODULE_HUES = [212, 32, 160, 280, 340, 190, 60, 245, 100, 5] as const;

/** The colour of a frame by its module alone; without a module it is grey. */
export function modulePaint(kind: Kind, module: string, theme: Theme): Paint {
  if (kind === "root" || kind === "trimmed" || module === "") return framePaint("unknown", "", theme);
  const hash = textHash(module);
  const hue = MODULE_HUES[hash % MODULE_HUES.length] as number;
  const step = ((hash >>> 8) % 4) - 1.5;
  const [saturation, lightness] = theme === "light" ? [58, 71] : [38, 39];
  return { fill: hsl([hue, saturation, lightness + step * 4]), text: TEXT[theme] };
}

export function kindSwatch(kind: Kind, theme: Theme): string {
  return hsl(BASE[kind][theme]);
}

export type Change = "same" | "grew" | "shrank" | "new" | "gone";

/** Between neutral grey and full red or blue; `strength` is 0 for grey, else up to 1. */
export function diffPaint(change: Change, strength: number, theme: Theme): Paint {
  const { grey, saturation, lightness, white } = RAMP[theme];
  if (change === "same") return grey;
  const hue = change === "grew" || change === "new" ? 4 : 217;
  // Even the weakest significant change must be seen beside grey.
  const t = 0.22 + 0.78 * Math.min(1, Math.max(0, strength));
  const at = ([start, more]: Span) => Math.round(start + more * t);
  return { fill: hsl([hue, at(saturation), at(lightness)]), text: t > white ? "#ffffff" : TEXT.light };
}

/** Marks that say the same without colour. */
export const MARK: Record<Change, string> = { same: "", grew: "▲", shrank: "▼", new: "✚", gone: "✕" };

/** Layers of the chart: neighbours in the list are far apart in hue, and none is near the red of warnings. */
const LAYERS = [
  "#4c8dff",
  "#f2a33c",
  "#35b58a",
  "#b57bee",
  "#e0709a",
  "#2fb3c9",
  "#9aa83a",
  "#7d83f0",
  "#d98452",
  "#5aa65a",
  "#c06bc2",
  "#4aa3df",
  "#c9a227",
  "#6f9e9a",
  "#8f7ae0",
  "#a8845e",
  "#3f9f75",
  "#cf7f7f",
  "#6d8bbd",
  "#88a85f",
] as const;

const REST_COLOUR = "#8a92a3";

/**
 * One colour a value: the value's own place by its name if it is free, else the next free one, so that a service keeps
 * its colour from one query to the next as far as possible and no two of a chart share one while there are enough.
 */
export function layerColours(values: readonly (string | null)[]): string[] {
  const taken = new Set<number>();
  return values.map((value) => {
    if (value === null) return REST_COLOUR;
    let place = textHash(value) % LAYERS.length;
    if (taken.size >= LAYERS.length) return LAYERS[place] as string;
    while (taken.has(place)) place = (place + 1) % LAYERS.length;
    taken.add(place);
    return LAYERS[place] as string;
  });
}

/** The same hue, darker or lighter than the ground: the part of a layer that the kernel spent. */
export function kernelShade(hex: string, theme: Theme): string {
  const towards = theme === "light" ? 0 : 255;
  const part = (at: number) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16);
    return Math.round(value + (towards - value) * 0.42)
      .toString(16)
      .padStart(2, "0");
  };
  return `#${part(1)}${part(3)}${part(5)}`;
}

function textHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 15;
  return hash >>> 0;
}
