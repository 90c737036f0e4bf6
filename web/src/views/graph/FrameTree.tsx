/**
 * The flamegraph as a tree of text: what a screen reader, and a narrow screen, read. Rows exist while they are in
 * sight.
 */
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { frameSwatch, kindOf, MARK, type Theme } from "../../logic/colour.ts";
import { sideFigure } from "../../logic/compare/norm.ts";
import { bothText, changeWords, type SideNames, sideText } from "../../logic/compare/sideNames.ts";
import { frameText, type WindowMeasure } from "../../logic/graph/measure.ts";
import { placeOfRow, type RowPlace, scrollToRow, visibleRows } from "../../logic/table/rows.ts";
import { percent, plural, shareOf } from "../../logic/text/format.ts";
import { selectionOf } from "../../logic/tree/focus.ts";
import { type OutlineRow, openedWith, openOf, openText, outline } from "../../logic/tree/outline.ts";
import { isRow, titleOf } from "../../logic/tree/rows.ts";
import { ancestors, changeOf, kindName, moduleName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { useSize } from "../ui/hooks.ts";

interface Props {
  tree: Tree;
  /** What the tree is of: another tree of the same leaves hands where they are. */
  subject: string;
  focus: number;
  selected: number | null;
  theme: Theme;
  /** Where it is no difference. */
  colourBy: "kind" | "module";
  measure: WindowMeasure;
  /** Which rows are open, as `openText` writes it. */
  open: string;
  onSelect: (node: number | null, change: { open?: string }) => void;
  onOpen: (open: string) => void;
  onZoom: (node: number) => void;
  onReset: () => void;
}

const ROW = 24;
/** CSS pixels that a level is set in; deep levels stand below each other, so that names stay in sight. */
const INDENT = 14;
const DEEPEST_INDENT = 18;
const MOVES: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 };

export function FrameTree(props: Props) {
  const { tree, subject, focus, selected, theme, colourBy, measure, onSelect, onOpen, onZoom, onReset } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const size = useSize(box);
  const [scroll, setScroll] = useState(0);
  const [place, setPlace] = useState<RowPlace | null>(null);
  const begin = useMemo(() => selectionOf(tree, focus), [tree, focus]);
  useEffect(() => setPlace(null), [subject, begin]);
  const chosen = useMemo(() => openOf(tree, focus, props.open), [tree, focus, props.open]);
  // The way to what the address, the search or another view has selected is open, too.
  const open = useMemo(() => {
    if (selected === null) return chosen;
    return new Set([...chosen, ROOT, ...ancestors(tree, selected).slice(0, -1)]);
  }, [chosen, selected]);
  const rows = useMemo(() => outline(tree, focus, open), [tree, focus, open]);
  /** A newer answer numbers frames in another way; of many siblings it may count others among the rest. */
  const keyOf = ({ node, rest }: OutlineRow) =>
    rest > 0
      ? `rest of ${selectionOf(tree, tree.parent[node] as number)}`
      : [moduleName(tree, node), kindName(tree, node), tree.inlined[node], selectionOf(tree, node)].join(" ");
  const active = useMemo(() => placeOfRow(rows, keyOf, place), [rows, place]);
  const setActive = (at: number) => {
    const row = rows[at];
    if (row !== undefined) setPlace({ at, key: keyOf(row) });
  };
  const { first, behind } = visibleRows(rows.length, ROW, scroll, size.height);
  const bring = (at: number) => {
    if (box.current !== null) box.current.scrollTop = scrollToRow(at, ROW, box.current.scrollTop, size.height);
  };
  // What is selected comes into sight; a newer answer brings it there no second time.
  const text = useMemo(() => selectionOf(tree, selected), [tree, selected]);
  useEffect(() => {
    if (selected === null) return;
    const at = rows.findIndex((row) => row.node === selected && row.rest === 0);
    if (at < 0) return;
    setActive(at);
    bring(at);
  }, [text, subject, begin, size.height]);

  const toggle = (row: OutlineRow) => {
    const next = new Set(open);
    if (row.state === "open") next.delete(row.node);
    else for (const node of openedWith(tree, row.node)) next.add(node);
    onOpen(openText(tree, focus, next));
  };
  const go = (to: number) => {
    const at = Math.min(Math.max(to, 0), rows.length - 1);
    const row = rows[at];
    if (row === undefined) return;
    setActive(at);
    // What is open for the sake of the row that was selected stays open.
    onSelect(row.node, { open: openText(tree, focus, open) });
    bring(at);
  };
  const parentOf = (at: number) => {
    const level = rows[at]?.level ?? 1;
    for (let i = at - 1; i >= 0; i--) if ((rows[i]?.level ?? 0) < level) return i;
    return at;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[active];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = MOVES[event.key];
    if (by !== undefined) go(active + by);
    else if (event.key === "ArrowRight" && row.state === "closed") toggle(row);
    else if (event.key === "ArrowRight" && row.state === "open") go(active + 1);
    else if (event.key === "ArrowLeft" && row.state === "open") toggle(row);
    else if (event.key === "ArrowLeft") go(parentOf(active));
    else if (event.key === "Enter") onZoom(row.node);
    else if (event.key === " ") onSelect(row.node, {});
    else if (event.key === "Escape") onReset();
    else return;
    event.preventDefault();
  };

  const share = (samples: number) => shareOf(samples, measure.samples);
  return (
    <div class="frame-tree-box">
      <div class={`frame-tree-head${tree.diff === null ? "" : " diff"}`} aria-hidden="true">
        <span>{tree.diff === null ? "Total" : sidesHead(measure.sideNames)}</span>
        {tree.diff === null && <span>{tree.shape === "upright" ? "Self" : ""}</span>}
        <span>Frame</span>
      </div>
      <div
        class={`frame-tree${tree.diff === null ? "" : " diff"}`}
        ref={box}
        role="tree"
        tabIndex={0}
        aria-label={`Frames of ${measure.title} as a tree. Right opens, left closes, Enter zooms.`}
        aria-activedescendant={rows.length > 0 ? `${id}-${active}` : undefined}
        data-testid="frame-tree"
        onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
      >
        <div class="frame-tree-body" role="none" style={{ height: `${rows.length * ROW}px` }}>
          {rows.slice(first, behind).map((row, i) => {
            const at = first + i;
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the tree itself takes the keys for its active row.
              <div
                key={keyOf(row)}
                id={`${id}-${at}`}
                role="treeitem"
                tabIndex={-1}
                aria-level={row.level}
                aria-posinset={row.place}
                aria-setsize={row.siblings}
                aria-expanded={row.state === "leaf" ? undefined : row.state === "open"}
                aria-selected={row.node === selected}
                class={`${at === active ? "active" : ""}${row.node === selected ? " chosen" : ""}`}
                style={{ transform: `translateY(${at * ROW}px)` }}
                onClick={() => {
                  // The tree takes the keys, also where this row is scrolled out of sight or moves.
                  box.current?.focus({ preventScroll: true });
                  go(at);
                  if (row.state !== "leaf") toggle(row);
                }}
              >
                {tree.diff === null ? (
                  <>
                    <b aria-hidden="true">
                      <u style={{ width: `${share(row.samples) * 100}%` }} />
                      <s>{percent(share(row.samples))}</s>
                    </b>
                    <small aria-hidden="true">
                      {tree.shape === "upright" && row.rest === 0 ? percent(share(tree.self[row.node] as number)) : ""}
                    </small>
                  </>
                ) : (
                  <b aria-hidden="true">
                    {bothText(
                      sideFigure(row.baseSamples, 0, measure),
                      sideFigure(row.samples, 1, measure),
                      measure.sideNames,
                    )}
                  </b>
                )}
                <span style={{ width: `${Math.min(row.level - 1, DEEPEST_INDENT) * INDENT}px` }} />
                <i aria-hidden="true">{row.state === "leaf" ? "" : row.state === "open" ? "▾" : "▸"}</i>
                {row.rest > 0 ? (
                  <em>{restText(row)}</em>
                ) : (
                  <Frame
                    tree={tree}
                    row={row}
                    theme={theme}
                    colourBy={colourBy}
                    said={frameText(tree, row.node, focus, measure)}
                    sideNames={measure.sideNames}
                  />
                )}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function sidesHead(sides: SideNames): string {
  const { names, inTurn } = sides;
  return inTurn ? bothText(...names, sides) : `${sideText(sides, 0)} · ${sideText(sides, 1)}`;
}

function restText({ rest, samples }: OutlineRow): string {
  return `${plural(rest, "smaller frame")} with ${plural(samples, "sample")}`;
}

interface FrameProps {
  tree: Tree;
  row: OutlineRow;
  theme: Theme;
  colourBy: "kind" | "module";
  /** The name, and then in words what the row shows by figures and colours. */
  said: string;
  sideNames: SideNames;
}

function Frame({ tree, row, theme, colourBy, said, sideNames }: FrameProps) {
  const name = titleOf(tree, row.node);
  const change = changeOf(tree, row.node);
  return (
    <>
      {tree.diff === null ? (
        <i
          class="swatch"
          aria-hidden="true"
          style={{
            background: frameSwatch(
              colourBy,
              kindOf(kindName(tree, row.node), false),
              moduleName(tree, row.node),
              theme,
            ),
          }}
        />
      ) : (
        <i class={`mark ${change}`} title={changeWords(sideNames, change)} aria-hidden="true">
          {MARK[change]}
        </i>
      )}
      {isRow(tree, row.node) ? <strong>{name}</strong> : <bdi>{name}</bdi>}
      <span class="visually-hidden">{said.slice(name.length)}</span>
      {/* Programs begin alike: whose `_start` it is says where another module begins. */}
      <span class="dim" aria-hidden="true">
        {isRow(tree, row.node) || tree.module[row.node] === tree.module[tree.parent[row.node] as number]
          ? ""
          : moduleName(tree, row.node)}
      </span>
    </>
  );
}
