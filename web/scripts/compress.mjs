// Writes .gz and .br beside every text asset of dist/, which the server sends as they are, and refuses a bundle that
// outgrew its budgets: of what a browser fetches before the first picture, and of each part that it fetches later.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const FIRST_BYTES = 75_000;
const PART_BYTES = 30_000;
const TEXT = new Set([".html", ".js", ".css", ".svg", ".json", ".txt"]);
const dist = fileURLToPath(new URL("../dist", import.meta.url));

function* files(folder) {
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else yield path;
  }
}

// The page itself names what it needs at once; everything else is imported by that when it is wanted. A sheet with a
// condition is for few, and no browser waits for it where the condition does not hold.
const named = readFileSync(join(dist, "index.html"), "utf8");
const page = named.replaceAll(/<link[^>]*\smedia="[^"]*"[^>]*>/g, "");
const first = new Set(["/index.html", ...[...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path)]);
let broken = false;
const refuse = (why) => {
  console.error(why);
  broken = true;
};

// What a link to a view needs beside that: the view's file, all that this imports, and the styles of later parts. The
// server names them with the page (server/src/api/assets.rs), so that no link waits for a round trip more.
const textOf = (name) => readFileSync(join(dist, "assets", name), "utf8");
const script = /src="\/assets\/([^"]+\.js)"/.exec(page)?.[1] ?? "";
const sheets = [...textOf(script).matchAll(/["'`]\/assets\/([^"'`]+\.css)["'`]/g)].map(([, name]) => name);
if (sheets.length !== 1) refuse(`${script} names ${sheets.length} sheets of styles for later parts, not one`);
const assets = readdirSync(join(dist, "assets"));
const addresses = readFileSync(new URL("../src/state/address/url.ts", import.meta.url), "utf8");
const names = /^ {2}view: \[([^\]]+)\]/m.exec(addresses)?.[1] ?? "";
const views = {};
for (const [, view] of names.matchAll(/"([a-z]+)"/g)) {
  // The first view is in the first script.
  if (view === "explore") continue;
  const prefix = `${view[0].toUpperCase()}${view.slice(1)}-`;
  const needed = new Set(assets.filter((name) => name.startsWith(prefix) && name.endsWith(".js")));
  if (needed.size !== 1) refuse(`the view ${view} has ${needed.size} files ${prefix}….js, not one`);
  // What is added to a set while it is gone through is gone through as well.
  for (const name of needed)
    for (const [, imported] of textOf(name).matchAll(/(?:from|import)\s*["'`]\.\/([^"'`]+\.js)["'`]/g))
      if (imported !== script) needed.add(imported);
  views[view] = [...needed, ...sheets].map((name) => `assets/${name}`);
}
if (Object.keys(views).length === 0) refuse("src/state/address/url.ts names no views as this script reads them");
writeFileSync(join(dist, "views.json"), JSON.stringify(views));

const sums = { first: 0, all: 0 };
const parts = [];
for (const path of [...files(dist)]) {
  if (!TEXT.has(extname(path))) continue;
  const raw = readFileSync(path);
  const gzip = gzipSync(raw, { level: 9 });
  const brotli = brotliCompressSync(raw, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length },
  });
  writeFileSync(`${path}.gz`, gzip);
  writeFileSync(`${path}.br`, brotli);
  sums.all += gzip.length;
  const name = relative(dist, path).replaceAll("\\", "/");
  if (first.delete(`/${name}`)) sums.first += gzip.length;
  else parts.push({ name, bytes: gzip.length });
}
for (const missing of first) refuse(`index.html names ${missing}, which the build did not make`);
const kb = (bytes) => (bytes / 1000).toFixed(1);
const largest = parts.reduce((most, part) => (part.bytes > most.bytes ? part : most), { name: "", bytes: 0 });
console.log(
  `first load: ${kb(sums.first)} kB gzip of ${kb(FIRST_BYTES)}; largest later part: ${kb(largest.bytes)} kB of ` +
    `${kb(PART_BYTES)} (${largest.name}); all parts: ${kb(sums.all)} kB`,
);
if (sums.first > FIRST_BYTES)
  refuse("the first load outgrew its budget: let a part of it come later (src/views/lazyViews.tsx)");
for (const { name, bytes } of parts)
  if (bytes > PART_BYTES)
    refuse(`${name} outgrew its budget with ${kb(bytes)} kB: divide it, or drop what is not worth it`);
if (broken) process.exit(1);
