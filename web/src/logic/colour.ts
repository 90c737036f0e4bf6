/**
 * Colours. A name has its colour from its letters alone, so that it has the same one in any company, and is apart in
 * hue from what a difference takes. Frames are coloured by module, or by kind; a difference takes one of two pairs of
 * hues by the strength that the server computed. Every colour comes with a text colour that is readable on it. Out: CSS
 * colours that a canvas takes.
 */

export type Theme = "light" | "dark";

export interface Paint {
  fill: string;
  text: string;
}

/** Languages that something runs, by what runs them, as the server calls that; and what people call them. */
export const LANGUAGES = {
  jvm: "Java",
  cpython: "Python",
  v8js: "Node.js",
  ruby: "Ruby",
  php: "PHP",
  dotnet: ".NET",
  beam: "Erlang",
  perl: "Perl",
  lua: "Lua",
  r: "R",
  julia: "Julia",
  wasm: "WebAssembly",
} as const;
export type Language = keyof typeof LANGUAGES;

/**
 * What the legend names, in its order. `inlined` is a native frame that the compiler dissolved in its caller;
 * `interpreted` is of a language that is not told.
 */
export const KINDS = [
  "kernel",
  "native",
  ...(Object.keys(LANGUAGES) as Language[]),
  "interpreted",
  "jit",
  "inlined",
  "unknown",
] as const;
export type Kind = (typeof KINDS)[number] | "root" | "trimmed" | "label";

type Hsl = readonly [hue: number, saturation: number, lightness: number];

/**
 * The middle of each kind's shades: found by a search for colours that are as far from each other as can be, also for
 * those who see no red or no green, under a text that is read and on the page's ground.
 */
const BASE: Record<Kind, Record<Theme, Hsl>> = {
  kernel: { light: [27, 86, 66], dark: [25, 62, 33] },
  native: { light: [212, 72, 70], dark: [214, 50, 42] },
  interpreted: { light: [152, 54, 60], dark: [152, 38, 18] },
  jit: { light: [270, 33, 72], dark: [270, 53, 43] },
  jvm: { light: [132, 56, 73], dark: [132, 25, 32] },
  cpython: { light: [310, 35, 61], dark: [310, 68, 25] },
  v8js: { light: [234, 80, 72], dark: [234, 66, 54] },
  ruby: { light: [231, 44, 83], dark: [231, 55, 36] },
  php: { light: [359, 69, 66], dark: [359, 57, 26] },
  dotnet: { light: [51, 80, 69], dark: [51, 74, 18] },
  beam: { light: [213, 49, 61], dark: [213, 59, 33] },
  perl: { light: [28, 59, 56], dark: [28, 44, 27] },
  lua: { light: [328, 32, 67], dark: [328, 78, 28] },
  r: { light: [342, 52, 73], dark: [342, 38, 34] },
  julia: { light: [348, 76, 72], dark: [348, 63, 45] },
  wasm: { light: [189, 68, 84], dark: [189, 50, 32] },
  inlined: { light: [206, 62, 83], dark: [207, 34, 30] },
  unknown: { light: [220, 8, 74], dark: [220, 6, 36] },
  root: { light: [222, 14, 86], dark: [222, 12, 25] },
  trimmed: { light: [220, 8, 84], dark: [220, 6, 28] },
  label: { light: [222, 12, 36], dark: [222, 12, 74] },
};

/** What the themes do to all kinds alike: percent of lightness from one shade to the next, and the text. */
const TONE: Record<Theme, number> = { light: 2.1, dark: 1.6 };
const TEXT: Record<Theme, string> = { light: "#10141c", dark: "#f3f5fa" };
/** Rows of labels are the other way round than frames: dark among light ones, and light among dark ones. */
const ROW_TEXT: Record<Theme, string> = { light: "#ffffff", dark: "#10141c" };

type Span = readonly [start: number, more: number];

/** Which hues a difference has: the usual pair, or one that those tell apart who see no red. */
export type Pair = "red-blue" | "orange-blue";

const DIFFERENCE_HUES: Record<Pair, { grew: number; shrank: number }> = {
  "red-blue": { grew: 4, shrank: 217 },
  "orange-blue": { grew: 30, shrank: 217 },
};

/** A difference: grey, and per cent at no strength with what full strength adds. */
const RAMP: Record<Theme, { grey: Paint; saturation: Span; lightness: Span }> = {
  light: { grey: { fill: "hsl(220 10% 86%)", text: "#1b2130" }, saturation: [40, 42], lightness: [86, -33] },
  dark: { grey: { fill: "hsl(220 8% 27%)", text: "#e4e8f1" }, saturation: [28, 42], lightness: [27, 20] },
};

const SHADES = 7;

const isLanguage = (kind: string): kind is Language => Object.hasOwn(LANGUAGES, kind);

/** A kind in a word, such as `native` or `Python`. */
export function kindWord(kind: Kind): string {
  return isLanguage(kind) ? LANGUAGES[kind] : kind === "jit" ? "JIT" : kind;
}

/** A function that was inlined is still of its language. */
export function kindOf(kind: string, inlined: boolean): Kind {
  if (kind === "root" || kind === "trimmed" || kind === "label" || isLanguage(kind)) return kind;
  if (inlined) return "inlined";
  return (KINDS as readonly string[]).includes(kind) ? (kind as Kind) : "unknown";
}

/** Of kinds that a tree has, those that a legend names, in its order. */
export function legendKinds(seen: readonly { kind: string; inlined: boolean }[]): Kind[] {
  const kinds = new Set(seen.map(({ kind, inlined }) => kindOf(kind, inlined)));
  return KINDS.filter((kind) => kinds.has(kind));
}

const hsl = ([hue, saturation, lightness]: Hsl) => `hsl(${hue} ${saturation}% ${lightness}%)`;

/** A row of labels, whatever frames are coloured by: it has no module, no kind and no hue. */
export function rowPaint(theme: Theme): Paint {
  return { fill: hsl(BASE.label[theme]), text: ROW_TEXT[theme] };
}

/** The colour of a frame in one window; `seed` is its module and function, whose shades differ. */
export function framePaint(kind: Kind, seed: string, theme: Theme): Paint {
  if (kind === "label") return rowPaint(theme);
  const [hue, saturation, lightness] = BASE[kind][theme];
  const flat = kind === "root" || kind === "trimmed" || kind === "unknown";
  const shade = flat ? 0 : (textHash(seed) % SHADES) - (SHADES - 1) / 2;
  return { fill: hsl([hue + shade * 1.6, saturation, lightness + shade * TONE[theme]]), text: TEXT[theme] };
}

/**
 * Hues of names, degrees of OKLCH: equal steps look equally far apart, and none is near the red, orange and blue of
 * differences.
 */
const NAME_HUES = [104, 122, 140, 156, 174, 200, 288, 304, 320, 338] as const;
/** Shades of each, full and pale: of a layer on the page's ground, and of a frame below its text. */
const SHADES_OF: Record<"layer" | Theme, { lightness: readonly number[]; chroma: readonly number[] }> = {
  layer: { lightness: [0.53, 0.585, 0.64], chroma: [0.14, 0.065] },
  light: { lightness: [0.78, 0.83, 0.88], chroma: [0.1, 0.05] },
  dark: { lightness: [0.37, 0.42, 0.47], chroma: [0.09, 0.045] },
};

const nameColours = new Map<number, string>();

/** The same hue and shade wherever the name stands, whatever else is there. */
function nameColour(name: string, on: "layer" | Theme): string {
  const hash = textHash(name);
  const hue = hash % NAME_HUES.length;
  const shade = (hash >>> 8) % 6;
  const key = (["layer", "light", "dark"].indexOf(on) * NAME_HUES.length + hue) * 6 + shade;
  let colour = nameColours.get(key);
  if (colour === undefined) {
    const { lightness, chroma } = SHADES_OF[on];
    colour = oklchHex(lightness[shade % 3] as number, chroma[shade < 3 ? 0 : 1] as number, NAME_HUES[hue] as number);
    nameColours.set(key, colour);
  }
  return colour;
}

/** As Ottosson defines OKLab (2020); what a screen cannot show loses colour, and keeps its lightness and hue. */
function oklchHex(lightness: number, chroma: number, hue: number): string {
  const radians = (hue * Math.PI) / 180;
  for (let c = chroma; ; c -= 0.005) {
    const [a, b] = [c * Math.cos(radians), c * Math.sin(radians)];
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const linear = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
    if (c > 0.005 && linear.some((part) => part < 0 || part > 1)) continue;
    const shown = linear.map((part) => {
      const value = Math.min(1, Math.max(0, part));
      return value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
    });
    return `#${shown
      .map((part) =>
        Math.round(part * 255)
          .toString(16)
          .padStart(2, "0"),
      )
      .join("")}`;
  }
}

/** The colour of a frame by its module alone; without a module it is grey. */
export function modulePaint(kind: Kind, module: string, theme: Theme): Paint {
  if (kind === "label") return rowPaint(theme);
  if (kind === "root" || kind === "trimmed" || module === "") return framePaint("unknown", "", theme);
  return { fill: nameColour(module, theme), text: TEXT[theme] };
}

/** The colour that stands for a frame beside its name. */
export function frameSwatch(by: "kind" | "module", kind: Kind, module: string, theme: Theme): string {
  return by === "kind" ? kindSwatch(kind, theme) : modulePaint(kind, module, theme).fill;
}

export function kindSwatch(kind: Kind, theme: Theme): string {
  return hsl(BASE[kind][theme]);
}

export type Change = "same" | "grew" | "shrank" | "new" | "gone";

/** Between neutral grey and a full hue; `strength` is 0 for grey, else up to 1. */
export function diffPaint(change: Change, strength: number, theme: Theme, pair: Pair = "red-blue"): Paint {
  const { grey, saturation, lightness } = RAMP[theme];
  if (change === "same") return grey;
  const hues = DIFFERENCE_HUES[pair];
  const hue = change === "grew" || change === "new" ? hues.grew : hues.shrank;
  // Even the weakest significant change must be seen beside grey.
  const t = 0.22 + 0.78 * Math.min(1, Math.max(0, strength));
  const at = ([start, more]: Span) => Math.round(start + more * t);
  const shown: Hsl = [hue, at(saturation), at(lightness)];
  return { fill: hsl(shown), text: luminance(shown) > DARK_BELOW ? "#000000" : "#ffffff" };
}

/** Of a ground at which black and white text are equally well read (WCAG 2). */
const DARK_BELOW = 0.179;

/** Relative luminance, as WCAG 2 defines it. */
function luminance([hue, saturation, lightness]: Hsl): number {
  const [s, l] = [saturation / 100, lightness / 100];
  const part = (n: number) => {
    const k = (n + hue / 30) % 12;
    const value = l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(4);
}

/** Marks that say the same without colour. */
export const MARK: Record<Change, string> = { same: "", grew: "▲", shrank: "▼", new: "✚", gone: "✕" };

/** What the limit of a chart's layers cut off. */
const REST_COLOUR = "#858d9e";

/** Of a layer of the chart, by its value alone; null is the rest. */
export function layerColour(value: string | null): string {
  return value === null ? REST_COLOUR : nameColour(value, "layer");
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

/** Changes from the strongest fall to the strongest growth, as a legend shows them. */
export const LEGEND: readonly [Change, number][] = [
  ["shrank", 1],
  ["shrank", 0.3],
  ["same", 0],
  ["grew", 0.3],
  ["grew", 1],
];
