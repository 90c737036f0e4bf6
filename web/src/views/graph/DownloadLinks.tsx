/** Links to the same profile in the formats of other tools. */
import { address, type Parameters } from "../../api/address.ts";
import { rowLabels } from "../../logic/graph/key.ts";
import { measureFor } from "../../logic/table/measured.ts";
import { page } from "../../state/address/page.ts";
import { wokenAsked } from "../../state/moments/wokenBy.ts";
import { sent } from "../../state/screen/tree.ts";
import { saveAs } from "../lazyViews.tsx";
import { MenuAction } from "../ui/Menu.tsx";

export interface Download {
  path: "/flamegraph" | "/diff" | "/timeline";
  parameters: Parameters;
  /** What the table ranks; of preceding samples there is none to download. */
  by: string;
}

/** The server gives no more. */
const MOST_ROWS = 10_000;

const FORMATS: Record<Download["path"], readonly [string, string, string][]> = {
  "/flamegraph": [
    ["svg", "SVG of all", "by the server: a picture that can be zoomed and searched"],
    ["collapsed", "Collapsed stacks", "a;b;c N, for flamegraph.pl and inferno"],
    ["pprof", "pprof", "for go tool pprof"],
    ["speedscope", "speedscope", "for speedscope.app"],
    ["json", "JSON", "what this page draws"],
  ],
  "/diff": [
    ["svg", "SVG of all", "by the server: the difference as a picture"],
    ["collapsed", "Collapsed stacks", "a;b;c A B, for inferno-flamegraph"],
    ["json", "JSON", "what this page draws"],
  ],
  // Of preceding samples the server has one form.
  "/timeline": [["", "JSON", "what this page draws"]],
};

/** Made by the page: zoom, search and changes of the tree are kept, and what was asked stands in it. */
const SAVED = [
  ["html", "HTML file", "this view in one file, to be zoomed and searched without a server"],
  ["png", "PNG of what is in sight", "the chart and the graph, with what was asked"],
  ["svg", "SVG of what is in sight", "the graph, with what was asked"],
] as const;

export function DownloadLinks({ path, parameters, by, close }: Download & { close: () => void }) {
  // As the graph has them: the page leaves out a row that stands alone.
  const shown = sent.value.tree;
  const group = shown === null ? "" : rowLabels(shown).join(",");
  // The graph above it, where there is one.
  const woken = path === "/flamegraph" ? wokenAsked.value : null;
  // As the table has them.
  const ranked = path === "/diff" ? { measure: measureFor(by, page.value.measure) } : {};
  const every = [
    ...FORMATS[path].map(([format, title, purpose]) => [path, { format, group }, title, purpose] as const),
    ...(woken === null
      ? []
      : FORMATS[path].map(
          ([format, title, purpose]) => [path, { ...woken.parameters, format }, `Woken by: ${title}`, purpose] as const,
        )),
    ...(path === "/timeline"
      ? []
      : [
          [
            "/top",
            { format: "csv", by, limit: MOST_ROWS, ...ranked },
            "CSV",
            `a table by ${by}, for a spreadsheet`,
          ] as const,
        ]),
  ];
  return (
    <ul class="menu-list">
      {SAVED.map(([kind, title, purpose]) => (
        <MenuAction
          key={kind}
          title={title}
          purpose={purpose}
          onTake={() => {
            close();
            saveAs(kind);
          }}
        />
      ))}
      {every.map(([from, more, title, purpose]) => (
        <li key={title}>
          <a href={address(from, { ...parameters, ...more })} download="" onClick={close}>
            <b>{title}</b>
            <small>{purpose}</small>
          </a>
        </li>
      ))}
    </ul>
  );
}
