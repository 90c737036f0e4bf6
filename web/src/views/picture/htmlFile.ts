/** One file of HTML that needs no server: facts, pictures, the graph with all it takes to look into it, tables. */
import { escaped, scriptJson } from "../../logic/picture/escape.ts";
import type { Fact } from "../../logic/picture/facts.ts";
import type { TextTable } from "../../logic/picture/textTable.ts";
import { count } from "../../logic/text/format.ts";
import { type FileData, viewer } from "./viewer.ts";

export interface HtmlParts {
  title: string;
  facts: readonly Fact[];
  /** Charts as they are on the screen: what they show, and their pixels as a data URL. */
  images: readonly (readonly [alt: string, url: string])[];
  graph: FileData | null;
  /** Of a view that is a table. */
  table: TextTable | null;
  dark: boolean;
}

const MOST_FUNCTIONS = 50;

/** Nothing is fetched, and nothing can be: what the file holds is all there is. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

const STYLE = `
:root{--bg:#fff;--text:#161b26;--dim:#566074;--line:#d9dee7}
:root.dark{--bg:#131821;--text:#e7ebf3;--dim:#9aa5b8;--line:#262e3b;color-scheme:dark}
body{margin:16px;background:var(--bg);color:var(--text);font:13px/1.4 system-ui,sans-serif}
h1{font-size:18px}h2{font-size:15px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:0 0 12px}
dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}
img{max-width:100%;border:1px solid var(--line)}
canvas{display:block;width:100%}
.tools{display:flex;flex-wrap:wrap;gap:8px;margin:8px 0}
.tools *{font:inherit;min-height:28px}
#tip{position:fixed;z-index:2;max-width:60ch;padding:6px 10px;background:var(--bg);border:1px solid var(--line);
overflow-wrap:anywhere;pointer-events:none}
#said{min-height:1.4em;overflow-wrap:anywhere}
table{border-collapse:collapse}th,td{padding:2px 12px 2px 0;text-align:right}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
.wide{overflow-x:auto}.wide th,.wide td{text-align:left;vertical-align:top}`;

/** Functions by their samples, a recursion counted once: what the canvas shows, as text. */
function functionRows({ frames }: FileData): [string, string, number, number][] {
  const sums = new Map<string, { name: string; module: string; total: number; self: number }>();
  const way: number[] = [];
  frames.parent.forEach((parent, i) => {
    while (way.length > 0 && way[way.length - 1] !== parent) way.pop();
    const key = `${frames.name[i]} ${frames.module[i]}`;
    const isInner = way.some((above) => `${frames.name[above]} ${frames.module[above]}` === key);
    way.push(i);
    if (i === 0) return;
    const known = sums.get(key) ?? {
      ...{
        name: frames.names[frames.name[i] as number] ?? "",
        module: frames.modules[frames.module[i] as number] ?? "",
      },
      ...{ total: 0, self: 0 },
    };
    if (!isInner) known.total += frames.total[i] as number;
    known.self += frames.self[i] as number;
    sums.set(key, known);
  });
  return [...sums.values()]
    .sort((a, b) => b.total - a.total)
    .slice(0, MOST_FUNCTIONS)
    .map(({ name, module, total, self }) => [name, module, total, self]);
}

function graphPart(graph: FileData): string {
  const rows = functionRows(graph).map(
    ([name, module, total, self]) =>
      `<tr><td><bdi>${escaped(name)}</bdi></td><td><bdi>${escaped(module)}</bdi></td>` +
      `<td>${count(total)}</td><td>${count(self)}</td></tr>`,
  );
  return `<div class="tools"><input id="find" type="search" placeholder="Find a function" aria-label="Find a function">
<button id="whole" type="button">Show all</button><button id="theme" type="button">Light or dark</button></div>
<canvas id="graph" tabindex="0" role="application" aria-label="Flamegraph. Arrow keys move, Enter zooms, Escape shows all. The table below has the largest functions as text."></canvas>
<p id="said" role="status"></p><div id="tip" hidden></div>
<h2>Largest functions</h2>
<table><thead><tr><th>function</th><th>module</th><th>total</th><th>self</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table>
<script type="application/json" id="data">${scriptJson(graph)}</script>
<script>(${viewer.toString().replaceAll("</", "<\\/")})(JSON.parse(document.getElementById("data").textContent))</script>`;
}

/** What is wider than the screen scrolls by itself, by keys too. */
function tablePart({ title, head, rows }: TextTable): string {
  const line = (texts: readonly string[], cell: "th" | "td") =>
    `<tr>${texts.map((text) => `<${cell}><bdi>${escaped(text)}</bdi></${cell}>`).join("")}</tr>`;
  return `<h2>${escaped(title)}</h2>
<div class="wide" tabindex="0" role="region" aria-label="${escaped(title)}">
<table><thead>${line(head, "th")}</thead><tbody>
${rows.map((row) => line(row, "td")).join("\n")}
</tbody></table></div>`;
}

export function htmlFile({ title, facts, images, graph, table, dark }: HtmlParts): string {
  return `<!doctype html>
<html lang="en"${dark ? ' class="dark"' : ""}><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head><body>
<h1>${escaped(title)}</h1>
<dl>${facts.map(([name, text]) => `<dt>${escaped(name)}</dt><dd>${escaped(text)}</dd>`).join("\n")}</dl>
${images.map(([alt, url]) => `<p><img src="${escaped(url, Number.POSITIVE_INFINITY)}" alt="${escaped(alt)}"></p>`).join("\n")}
${graph === null ? "" : graphPart(graph)}
${table === null ? "" : tablePart(table)}
</body></html>
`;
}
