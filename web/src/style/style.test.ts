import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

/** Files below `src` by path, without their comments. */
function read(wanted: (path: string) => boolean): Map<string, string> {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(wanted);
  return new Map(paths.map((path) => [path, readFileSync(`${root}${path}`, "utf8").replace(/\/\*.*?\*\//gs, "")]));
}

const sheets = read((path) => path.endsWith(".css"));
const style = [...sheets.values()].join("\n");
const source = [...read((path) => /(?<!\.test)\.tsx?$/.test(path)).values()].join("\n");

/** `file: declaration` of all declarations that a pattern finds. */
function declarations(pattern: RegExp): string[] {
  return [...sheets].flatMap(([path, text]) =>
    [...text.matchAll(/^\s*([\w-]+: [^;{}]*);/gm)]
      .map(([, declaration]) => (declaration as string).replace(/\s+/g, " "))
      .filter((declaration) => pattern.test(declaration))
      .map((declaration) => `${path}: ${declaration}`),
  );
}

const distinct = (text: string, pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, name]) => name))];

describe("the styles", () => {
  it("have room and sizes of text from the scales of base.css, but for lines of a pixel", () => {
    const literal = /\b(?!1px)\d*\.?\d+(px|rem)\b/;
    const off = declarations(/^(padding|margin|gap|row-gap|column-gap|font-size)\b/).filter((one) => literal.test(one));
    expect(off).toEqual([]);
    expect(declarations(/^font-size\b/).length).toBeGreaterThan(10);
  });

  it("leave figures as wide as each other", () => {
    // The build puts the shorthand behind what stands beside it, and the shorthand sets figures back.
    expect(declarations(/^font:/).filter((one) => !one.endsWith("font: inherit"))).toEqual([]);
    expect(declarations(/^font-variant-numeric: tabular-nums/)).toHaveLength(1);
  });

  it("have colours from the themes of base.css and contrast.css, and paper is white", () => {
    const literal = /#[0-9a-f]{3,8}\b|\b(rgb|hsl)a?\(/i;
    const off = declarations(literal).filter((one) => !/^style\/(base|contrast|later\/print)\.css/.test(one));
    expect(off).toEqual([]);
  });

  it("say of a class in one sheet what holds on paper and on small screens: the later sheet would undo the first", () => {
    const selectors = (isLater: boolean) =>
      [...sheets]
        .filter(([path]) => path.includes("/later/") === isLater)
        .flatMap(([path, text]) => {
          const rules = distinct(text, /([^{};]+)\{/g) as string[];
          return rules.flatMap((rule) => rule.split(",")).map((one) => [path, one.trim()] as const);
        });
    const exact = (isLater: boolean) =>
      new Set(selectors(isLater).flatMap(([, one]) => (/^\.[\w-]+$/.test(one) ? [one] : [])));
    const ofFirst = exact(false);
    const ofLater = [...exact(true)].filter((one) => !ofFirst.has(one));
    expect(ofLater.length).toBeGreaterThan(20);
    const isOf = (selector: string, name: string) => new RegExp(`\\${name}(?![\\w-])`).test(selector);
    const apart = selectors(false).filter(([, selector]) => ofLater.some((name) => isOf(selector, name)));
    expect(apart.map(([path, selector]) => `${path}: ${selector}`)).toEqual([]);
  });

  it("are of classes that views have, and of properties that are read", () => {
    const selectors = distinct(style, /([^{};]+)\{/g).join("\n");
    const isUsed = (name: string) => {
      // `side-${name}` makes a class of two parts.
      const made = name.replace(/-[^-]*$/, "-${");
      return new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(source) || (made !== name && source.includes(made));
    };
    const classes = distinct(selectors, /\.([a-z][\w-]*)/gi) as string[];
    expect(classes.length).toBeGreaterThan(100);
    expect(classes.filter((name) => !isUsed(name))).toEqual([]);
    const properties = distinct(style, /(--[\w-]+):/g) as string[];
    const isRead = (name: string) => style.includes(`var(${name})`) || source.includes(`"${name}"`);
    expect(properties.filter((name) => !isRead(name))).toEqual([]);
  });
});
