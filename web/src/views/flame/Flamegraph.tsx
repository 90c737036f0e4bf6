/**
 * The flamegraph: a canvas as large as its viewport within a scrolling box. In: properties alone, so that two can stand
 * beside each other: a tree, which frame is zoomed, what is searched for, what can be done with a frame. Out: the wish
 * to zoom and the selected frame. Pointer and keyboard can do the same.
 */
import type { ComponentChildren, ComponentType } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Pair, Theme } from "../../logic/colour.ts";
import { Runs } from "../../logic/flame/cells.ts";
import type { Search } from "../../logic/flame/search.ts";
import { frameText, type WindowMeasure } from "../../logic/graph/measure.ts";
import { plural } from "../../logic/text/format.ts";
import { findSelection, selectionOf } from "../../logic/tree/focus.ts";
import { titleOf } from "../../logic/tree/rows.ts";
import { frameName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { copyText } from "../ui/clipboard.ts";
import { useCanvas } from "../ui/hooks.ts";
import type { FrameAction, FrameMenuProps } from "./FrameMenu.tsx";
import { commandOf } from "./keys.ts";
import { MAP_HEIGHT, Minimap } from "./minimap.ts";
import { type ColourBy, Colours, paint, ROW, type Scene, viewAt } from "./paint.ts";
import type { TooltipProps } from "./Tooltip.tsx";
import { usePointer } from "./usePointer.ts";
import { type OnceRested, useRange } from "./useRange.ts";
import { useScroll } from "./useScroll.ts";

export interface FlamegraphProps {
  tree: Tree;
  /** What the tree is of: another tree of the same leaves hands where they are. */
  subject: string;
  focus: number;
  search: Search | null;
  selected: number | null;
  /** What another view points at: frames of this name are outlined. */
  pointed: string | null;
  theme: Theme;
  colourBy: ColourBy;
  /** The hues of differences. */
  pair?: Pair;
  flame: boolean;
  measure: WindowMeasure;
  /** What of the zoomed frame's width is in sight, as `partText` writes it. */
  part: string;
  /** What can be done with a frame, or with the whole tree. Copying is the graph's own: it tells how it went. */
  actionsOf: (node: number | null) => readonly FrameAction[];
  onZoom: (node: number) => void;
  onSelect: (node: number | null) => void;
  onPart: (part: string) => void;
  /** When a hand on the graph rests, as the page has it. */
  onceRested: OnceRested;
  /** Nothing is zoomed and nothing selected any more. */
  onReset: () => void;
  onPoint: (name: string | null) => void;
  /** What stands before what is said of the selected frame, in a line below the graph; left out: there is no line. */
  foot?: ComponentChildren;
  /** What opens beside a frame: a page may fetch it when a hand comes near. */
  tip: ComponentType<TooltipProps>;
  frameMenu: ComponentType<FrameMenuProps>;
}

export function Flamegraph(props: FlamegraphProps) {
  const { tree, focus, search, selected, pointed, theme, colourBy, pair, flame, part, measure } = props;
  const { onZoom, onSelect, onReset, tip: Tooltip, frameMenu: FrameMenu } = props;
  const colours = useRef<Colours | null>(null);
  const runs = useRef(new Runs());
  const map = useRef<HTMLCanvasElement>(null);
  const minimap = useRef(new Minimap());
  const drawnTop = useRef(-1);
  const [menu, setMenu] = useState<{ tree: Tree; node: number; x: number } | null>(null);
  // A newer answer numbers frames in another way: the menu stays with its own, as long as there is one.
  const open = useMemo(() => {
    if (menu === null || menu.tree === tree) return menu;
    const node = findSelection(tree, selectionOf(menu.tree, menu.node));
    return node === null ? null : { ...menu, tree, node };
  }, [menu, tree]);
  useLayoutEffect(() => {
    if (menu === null || open !== null) return;
    setMenu(null);
    canvas.current?.focus();
  }, [menu, open]);
  const [copied, setCopied] = useState("");
  const pointedName = useMemo(() => (pointed === null ? -1 : tree.strings.indexOf(pointed)), [tree, pointed]);
  const drawn = useCanvas((context, surface) => {
    if (colours.current?.fits(tree, theme, colourBy, pair) !== true)
      colours.current = new Colours(tree, theme, colourBy, pair);
    drawnTop.current = box.current?.scrollTop ?? 0;
    const scene: Scene = {
      tree,
      view: range.view.current,
      focus,
      search,
      hovered: open?.node ?? hover?.node ?? null,
      selected,
      pointed: pointedName,
      theme,
      flame,
      ...surface,
      scrollTop: drawnTop.current,
      firstRow: scroll.inSight.first,
      rows: scroll.rows,
      runs: runs.current,
    };
    paint(context, scene, colours.current);
    if (map.current !== null) minimap.current.paint(map.current, scene, colours.current, scroll.whole);
  }, null);
  const { box, canvas, size, style } = drawn;

  const zoom = (node: number) => {
    setCopied("");
    onZoom(node);
  };
  /** At `x` pixels of the canvas. Nothing is selected by it, so that the frame stays where it is. */
  const openMenu = (node: number, x: number) => {
    pointer.leave();
    setMenu({ tree, node, x });
  };

  const range = useRange(props, drawn);
  const scroll = useScroll(props, drawn, drawnTop);
  const pointer = usePointer(props, drawn, map, range, scroll, { onZoom: zoom, onMenu: openMenu });
  const { rows, inSight, whole } = scroll;
  const { hover } = pointer;

  // Behind the hooks that place the box and what is in sight of the width: a change is one picture, and what is told
  // anew with the same picture is none.
  useLayoutEffect(() => {
    if (!range.isGliding()) drawn.draw();
  }, [
    ...[size, tree, focus, part, search, selected, pointedName, theme, colourBy, pair, flame],
    ...[open?.node, hover?.node, inSight, rows, whole.first, whole.rows],
  ]);

  // Seen in the browser's own recordings once it is drawn, and by `cargo xtask bench web`.
  useLayoutEffect(() => {
    performance.mark("stakeout:flamegraph", { detail: tree.size });
  }, [tree]);

  const select = (node: number) => {
    setCopied("");
    onSelect(node);
    pointer.leave();
    scroll.reveal(node);
  };
  const copy = (node: number) => {
    const name = frameName(tree, node);
    void copyText(name).then((done) => setCopied(done ? `copied ${name}` : "the browser did not allow copying"));
  };
  const actionsOf = (node: number): readonly FrameAction[] => [
    ...props.actionsOf(node),
    { key: "c", label: "Copy the name", hint: frameName(tree, node), run: () => copy(node) },
  ];
  /** Where the row of the menu's frame is on the screen now, whatever moved meanwhile. */
  const menuAnchor = (node: number, x: number) => {
    const bounds = canvas.current?.getBoundingClientRect() ?? { left: 0, top: 0 };
    const top = scroll.placeOf(tree.depth[node] as number) * ROW - (box.current?.scrollTop ?? 0);
    return { x: bounds.left + x, top: bounds.top + top, bottom: bounds.top + top + ROW };
  };
  /** Beside the frame: where the menu opens by key. */
  const menuAtFrame = (node: number) => {
    const { from, until } = viewAt({ tree, focus, view: range.view.current }, tree.depth[node] as number);
    const left = Math.max(0, (((tree.start[node] as number) - from) / (until - from)) * size.width);
    scroll.reveal(node);
    openMenu(node, left);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const { limits, view } = range;
    const command = commandOf(event, { tree, focus, selected, search, flame, view: view.current, limits });
    if (command === null) return;
    if (command.does === "menu") menuAtFrame(command.node);
    else if (command.does === "show") pointer.show(command.view);
    else if (command.does === "select") select(command.node);
    else if (command.does === "zoom") zoom(command.node);
    else if (command.does === "find") {
      if (command.isHidden) onZoom(ROOT);
      select(command.node);
    } else if (command.does === "reset") {
      setCopied("");
      range.reset();
      onReset();
    } else {
      const { node, key } = command;
      const action = (node === null ? props.actionsOf(null) : actionsOf(node)).find((one) => one.key === key);
      if (action === undefined) return;
      action.run();
    }
    event.preventDefault();
  };

  const spoken = copied || (selected === null ? "" : frameText(tree, selected, focus, measure));

  return (
    <div class="flame">
      <canvas
        ref={map}
        class="minimap"
        role="img"
        aria-label="The whole graph in little; what is in sight is framed."
        data-testid="minimap"
        style={{ width: `${size.width}px`, height: `${MAP_HEIGHT}px` }}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          pointer.onMap(event);
        }}
        onPointerMove={pointer.onMap}
      />
      <div
        class="flame-scroll"
        data-zooms="the graph"
        ref={box}
        style={{ "--rows": `${Math.max(rows * ROW, 1)}px` }}
        onScroll={scroll.onScroll}
      >
        <div class="flame-extent" style={{ height: `${Math.max(rows * ROW, 1)}px` }}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: an application has its own keys. */}
          <canvas
            ref={canvas}
            class={hover === null ? "" : "over-frame"}
            style={style}
            role="application"
            aria-roledescription="flamegraph"
            aria-label={
              `Flamegraph of ${measure.title}. Arrow keys move, Enter zooms, Escape shows all, ` +
              "n finds the next match, Shift F10 opens the menu. " +
              "The tree of frames and the table of functions hold the same as text."
            }
            tabIndex={0}
            data-frames
            data-testid="flamegraph"
            onKeyDown={onKeyDown}
            {...pointer.onCanvas}
          />
        </div>
      </div>
      {hover !== null && open === null && (
        <Tooltip
          tree={tree}
          node={hover.node}
          sliver={hover.sliver}
          focus={focus}
          x={hover.x}
          y={hover.y}
          measure={measure}
        />
      )}
      {open !== null && (
        <FrameMenu
          anchor={() => menuAnchor(open.node, open.x)}
          name={`Frame ${titleOf(tree, open.node)}`}
          actions={actionsOf(open.node)}
          onClose={(back) => {
            setMenu(null);
            if (back) canvas.current?.focus();
          }}
        />
      )}
      {props.foot !== undefined && (
        <div class="flame-status">
          {props.foot}
          <span role="status" aria-live="polite" data-testid="selected-frame" dir="auto">
            {spoken || (
              <span class="dim">
                Click a frame to zoom; right click, or Shift F10, opens its menu; arrow keys move.
              </span>
            )}
          </span>
          {scroll.inSight.thin > 0 && (
            <span class="dim" data-testid="thin-rows">
              {plural(scroll.inSight.thin, "row")} more of frames thinner than a pixel: zoom in
            </span>
          )}
        </div>
      )}
    </div>
  );
}
