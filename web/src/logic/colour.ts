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

/** Hue, saturation and lightness of each kind in the middle of its shades. */
const BASE: Record<Theme, Record<Kind, readonly [number, number, number]>> = {
  light: {
    kernel: [27, 86, 66],
    native: [212, 72, 70],
    interpreted: [146, 42, 62],
    jit: [275, 52, 74],
    inlined: [206, 62, 83],
    unknown: [220, 8, 74],
    root: [222, 14, 86],
    trimmed: [220, 8, 84],
  },
  dark: {
    kernel: [25, 62, 42],
    native: [214, 50, 43],
    interpreted: [150, 36, 34],
    jit: [276, 34, 46],
    inlined: [207, 34, 34],
    unknown: [220, 6, 36],
    root: [222, 12, 25],
    trimmed: [220, 6, 28],
  },
};

const SHADES = 7;

export function kindOf(kind: string, inlined: boolean): Kind {
  if (kind === "root" || kind === "trimmed") return kind;
  if (inlined) return "inlined";
  return (KINDS as readonly string[]).includes(kind) ? (kind as Kind) : "unknown";
}

/** The colour of a frame in one window; `seed` is its module and function, whose shades differ. */
export function framePaint(kind: Kind, seed: string, theme: Theme): Paint {
  const [hue, saturation, lightness] = BASE[theme][kind];
  const flat = kind === "root" || kind === "trimmed" || kind === "unknown";
  const shade = flat ? 0 : (textHash(seed) % SHADES) - (SHADES - 1) / 2;
  const tone = theme === "light" ? 2.1 : 1.6;
  return {
    fill: `hsl(${hue + shade * 1.6} ${saturation}% ${lightness + shade * tone}%)`,
    text: theme === "light" ? "#10141c" : "#f3f5fa",
  };
}

export function kindSwatch(kind: Kind, theme: Theme): string {
  const [hue, saturation, lightness] = BASE[theme][kind];
  return `hsl(${hue} ${saturation}% ${lightness}%)`;
}

export type Change = "same" | "grew" | "shrank" | "new" | "gone";

/** Between neutral grey and full red or blue; `strength` is 0 for grey, else up to 1. */
export function diffPaint(change: Change, strength: number, theme: Theme): Paint {
  const grey: Paint =
    theme === "light" ? { fill: "hsl(220 10% 86%)", text: "#1b2130" } : { fill: "hsl(220 8% 27%)", text: "#e4e8f1" };
  if (change === "same") return grey;
  const grown = change === "grew" || change === "new";
  // Even the weakest significant change must be seen beside grey.
  const t = 0.22 + 0.78 * Math.min(1, Math.max(0, strength));
  const hue = grown ? 4 : 217;
  if (theme === "light") {
    const fill = `hsl(${hue} ${Math.round(40 + 42 * t)}% ${Math.round(86 - 33 * t)}%)`;
    return { fill, text: t > 0.78 ? "#ffffff" : "#10141c" };
  }
  const fill = `hsl(${hue} ${Math.round(28 + 42 * t)}% ${Math.round(27 + 20 * t)}%)`;
  return { fill, text: "#ffffff" };
}

/** Marks that say the same without colour. */
export const MARK: Record<Change, string> = { same: "", grew: "▲", shrank: "▼", new: "✚", gone: "✕" };

export const CHANGE_WORDS: Record<Change, string> = {
  same: "not shown to differ",
  grew: "grew",
  shrank: "shrank",
  new: "new: only after",
  gone: "gone: only before",
};

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

export const REST_COLOUR = "#8a92a3";

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

export function textHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 15;
  return hash >>> 0;
}
