/** Links to the same profile in the formats of other tools. */
import { address, type Parameters } from "../../api/address.ts";

export interface Download {
  path: "/flamegraph" | "/diff";
  parameters: Parameters;
  /** What the table ranks. */
  by: string;
}

/** The server gives no more. */
const MOST_ROWS = 10_000;

const FORMATS: Record<Download["path"], readonly [string, string, string][]> = {
  "/flamegraph": [
    ["svg", "SVG", "a picture that can be zoomed and searched"],
    ["collapsed", "Collapsed stacks", "a;b;c N, for flamegraph.pl and inferno"],
    ["pprof", "pprof", "for go tool pprof"],
    ["speedscope", "speedscope", "for speedscope.app"],
    ["json", "JSON", "what this page draws"],
  ],
  "/diff": [
    ["svg", "SVG", "the difference as a picture"],
    ["collapsed", "Collapsed stacks", "a;b;c A B, for inferno-flamegraph"],
    ["json", "JSON", "what this page draws"],
  ],
};

export function DownloadLinks({ path, parameters, by, close }: Download & { close: () => void }) {
  const every = [
    ...FORMATS[path].map(([format, title, purpose]) => [path, { format }, title, purpose] as const),
    ["/top", { format: "csv", by, limit: MOST_ROWS }, "CSV", `a table by ${by}, for a spreadsheet`] as const,
  ];
  return (
    <ul class="menu-list">
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
