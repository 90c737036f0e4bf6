/**
 * The flamegraph: a canvas as large as its viewport within a scrolling box. In: a tree, which frame is zoomed, what is
 * searched for. Out: the wish to zoom and the selected frame. Pointer and keyboard can do the same.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "../../logic/colour.ts";
import { Runs } from "../../logic/flame/cells.ts";
import {
  centred,
  hitAt,
  isVisible,
  moved,
  neighbour,
  partOf,
  partText,
  rowsInSight,
  type Sliver,
  type Step,
  scaled,
  type View,
  viewOf,
} from "../../logic/flame/layout.ts";
import { nextHit, type Search } from "../../logic/flame/search.ts";
import { scrollToRow } from "../../logic/table/rows.ts";
import { plural } from "../../logic/text/format.ts";
import { frameName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { type FrameAction, frameActions, treeActions } from "../graph/actions.ts";
import { copyText } from "../ui/clipboard.ts";
import { useCanvas } from "../ui/hooks.ts";
import { FrameMenu } from "./FrameMenu.tsx";
import { MAP_HEIGHT, Minimap } from "./minimap.ts";
import { type ColourBy, Colours, paint, ROW, type Scene, viewAt } from "./paint.ts";
import { Tooltip, tooltipText, type WindowMeasure } from "./Tooltip.tsx";

interface Props {
  tree: Tree;
  focus: number;
  search: Search | null;
  selected: number | null;
  /** What another view points at: frames of this name are outlined. */
  pointed: string | null;
  theme: Theme;
  colourBy: ColourBy;
  flame: boolean;
  measure: WindowMeasure;
  /** What of the zoomed frame's width is in sight, as `partText` writes it. */
  part: string;
  onZoom: (node: number) => void;
  onSelect: (node: number | null) => void;
  onPart: (part: string) => void;
  /** Nothing is zoomed and nothing selected any more. */
  onReset: () => void;
  onPoint: (name: string | null) => void;
}

const ZOOM_MS = 140;
/** A gesture of the wheel is over after this pause. */
const SETTLED_MS = 220;
/** Rows whose frames are all narrower than this (CSS pixels) don't make the graph taller; they are told below it. */
const ROW_WORTH = 0.3;
/** Of the width, for each pixel that the wheel turns. */
const WHEEL = 0.003;
/** Pixels that a press may move and still be a click. */
const DRAG_FROM = 4;
/** What of the width a key goes along it, and what it leaves of it. */
const ALONG: Record<string, number> = { ArrowLeft: -0.25, ArrowRight: 0.25 };
const INTO: Record<string, number> = { "+": 0.8, "-": 1.25 };
const STEPS: Record<string, Step> = { ArrowLeft: "left", ArrowRight: "right", Home: "first", End: "last" };

interface Pointed {
  tree: Tree;
  node: number;
  sliver: Sliver | null;
  x: number;
  y: number;
}

export function Flamegraph(props: Props) {
  const { tree, focus, search, selected, pointed, theme, colourBy, flame, measure, part } = props;
  const { onZoom, onSelect, onPart, onReset, onPoint } = props;
  const colours = useRef<Colours | null>(null);
  const runs = useRef(new Runs());
  const view = useRef<View>(partOf(part, viewOf(tree, focus)));
  const [under, setUnder] = useState<Pointed | null>(null);
  const [menu, setMenu] = useState<{ tree: Tree; node: number; x: number } | null>(null);
  // A frame of the tree before would be another frame in this one.
  const hover = under !== null && under.tree === tree ? under : null;
  const open = menu !== null && menu.tree === tree ? menu : null;
  const [copied, setCopied] = useState("");
  const { box, canvas, size, style, draw, drawSoon } = useCanvas((context, surface) => {
    if (colours.current?.fits(tree, theme, colourBy) !== true) colours.current = new Colours(tree, theme, colourBy);
    const scene: Scene = {
      tree,
      view: view.current,
      focus,
      search,
      hovered: open?.node ?? hover?.node ?? null,
      selected,
      pointed: pointedName,
      theme,
      flame,
      ...surface,
      scrollTop: box.current?.scrollTop ?? 0,
      firstRow: inSight.first,
      rows,
      runs: runs.current,
    };
    paint(context, scene, colours.current);
    if (mapCanvas.current !== null) minimap.current.paint(mapCanvas.current, scene, colours.current, whole);
  });
  const limits = viewOf(tree, focus);
  const inSight = useMemo(() => {
    const shown = partOf(part, limits);
    const zoom = (limits.until - limits.from) / (shown.until - shown.from);
    return rowsInSight(tree, focus, Math.max(1, size.width), ROW_WORTH / zoom);
  }, [tree, focus, size.width, part]);
  const filled = inSight.last - inSight.first + 1;
  // A short graph with its root at the bottom stands on the bottom of the box.
  const rows = flame ? Math.max(filled, Math.floor(size.height / ROW)) : filled;
  const all = useMemo(() => rowsInSight(tree, ROOT, Math.max(1, size.width), ROW_WORTH), [tree, size.width]);
  const whole = { first: Math.min(all.first, inSight.first), rows: Math.max(all.last, inSight.last) - all.first + 1 };
  const mapCanvas = useRef<HTMLCanvasElement>(null);
  const minimap = useRef(new Minimap());
  const pointedName = useMemo(() => (pointed === null ? -1 : tree.strings.indexOf(pointed)), [tree, pointed]);

  // Seen in the browser's own recordings, and by `cargo xtask bench web`.
  useLayoutEffect(() => {
    performance.mark("stakeout:flamegraph", { detail: tree.size });
  }, [tree]);

  const gliding = useRef(0);
  const glideTo = (target: View) => {
    const start = view.current;
    const began = performance.now();
    cancelAnimationFrame(gliding.current);
    gliding.current = requestAnimationFrame(function glide(now) {
      const part = Math.min(1, Math.max(0, now - began) / ZOOM_MS);
      const eased = 1 - (1 - part) ** 3;
      view.current = {
        from: start.from + (target.from - start.from) * eased,
        until: start.until + (target.until - start.until) * eased,
      };
      draw();
      if (part < 1) gliding.current = requestAnimationFrame(glide);
    });
  };

  // A zoom glides, so that the eye can follow it; another tree is simply there.
  const lastTree = useRef(tree);
  useLayoutEffect(() => {
    const still = lastTree.current !== tree || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const target = partOf(part, limits);
    lastTree.current = tree;
    if (still) {
      view.current = target;
      draw();
    } else if (partText(view.current, limits) !== part) glideTo(target);
    return () => cancelAnimationFrame(gliding.current);
  }, [tree, focus, part]);

  // The address follows once the wheel or the pointer rests.
  const resting = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(resting.current), [tree, focus]);
  const show = (seen: View) => {
    view.current = seen;
    setUnder(null);
    drawSoon();
    clearTimeout(resting.current);
    resting.current = setTimeout(() => onPart(partText(seen, limits)), SETTLED_MS);
  };
  /** The place of the tree's width that lies below the pointer. */
  const positionOf = (event: MouseEvent, of: HTMLElement, range: View): number => {
    const bounds = of.getBoundingClientRect();
    return range.from + ((event.clientX - bounds.left) / Math.max(1, bounds.width)) * (range.until - range.from);
  };

  // With Ctrl the wheel goes into the width, with Shift along it.
  const onWheel = (event: WheelEvent) => {
    const element = canvas.current;
    if (element === null) return;
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    const span = view.current.until - view.current.from;
    if (event.ctrlKey || event.metaKey) {
      const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY * WHEEL)));
      show(scaled(view.current, limits, positionOf(event, element, view.current), factor));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY))
      show(moved(view.current, limits, (sideways / Math.max(1, size.width)) * span));
    else return;
    event.preventDefault();
  };
  const drag = useRef<{ x: number; y: number; view: View; scrollTop: number; moves: boolean } | null>(null);
  /** True while the graph is dragged. */
  const dragged = (event: PointerEvent): boolean => {
    const from = drag.current;
    if (from === null || box.current === null || (event.buttons & 1) === 0) return false;
    const [x, y] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.moves && Math.hypot(x, y) < DRAG_FROM) return false;
    if (!from.moves) canvas.current?.setPointerCapture(event.pointerId);
    from.moves = true;
    box.current.scrollTop = from.scrollTop - y;
    const span = from.view.until - from.view.from;
    show(moved(from.view, limits, (-x / Math.max(1, size.width)) * span));
    return true;
  };

  const onMap = (event: PointerEvent) => {
    const [element, scroller] = [mapCanvas.current, box.current];
    if (element === null || scroller === null || (event.buttons & 1) === 0) return;
    const bounds = element.getBoundingClientRect();
    const line = ((event.clientY - bounds.top) / bounds.height) * whole.rows;
    const row = whole.first + (flame ? whole.rows - 1 - line : line);
    scroller.scrollTop = placeOf(row) * ROW - size.height / 2;
    show(centred(view.current, limits, positionOf(event, element, viewOf(tree, ROOT))));
  };

  const placeOf = (row: number) => (flame ? rows - 1 - (row - inSight.first) : row - inSight.first);
  const rowAt = (place: number) => inSight.first + (flame ? rows - 1 - place : place);
  const reveal = (node: number) => {
    const element = box.current;
    if (element === null) return;
    element.scrollTop = scrollToRow(placeOf(tree.depth[node] as number), ROW, element.scrollTop, size.height);
  };

  // The root is brought into sight once the graph's height is known or changes; where another part of the width has other rows, all stays where it was.
  const placed = useRef<{ tree: Tree; focus: number; part: string; rows: number; flame: boolean } | null>(null);
  // What lies below the box, in pixels: a flame stands on its root, also where the box becomes lower, as when lists come that stand above it.
  const last = useRef({ top: 0, height: 0, below: 0 });
  const measureBelow = (height: number) => {
    const top = box.current?.scrollTop ?? 0;
    last.current = { top, height, below: rows * ROW - top - height };
  };
  const onScroll = () => {
    // The browser tells of a scroll a frame later: a box that has another height by then is about to be placed anew, and what lies below it now is nobody's wish.
    if (box.current?.clientHeight === last.current.height) measureBelow(last.current.height);
    drawSoon();
  };
  useLayoutEffect(() => {
    const element = box.current;
    const was = placed.current;
    placed.current = { tree, focus, part, rows, flame };
    if (element === null) return;
    const isSame = was !== null && was.tree === tree && was.focus === focus && was.flame === flame;
    if (isSame && was.part !== part) {
      if (flame) element.scrollTop += (rows - was.rows) * ROW;
    } else if (isSame && was.rows === rows) {
      const end = rows * ROW - element.clientHeight;
      // A person may have scrolled in the frame in which the height changed; a box that became higher is moved to its end by the browser.
      if (element.scrollTop !== last.current.top && element.scrollTop < end) measureBelow(last.current.height);
      if (flame) element.scrollTop = end - last.current.below;
    } else {
      const root = placeOf(tree.rootRow) * ROW;
      if (tree.shape === "sandwich") element.scrollTop = root - size.height / 2;
      else element.scrollTop = flame ? rows * ROW : 0;
    }
    measureBelow(element.clientHeight);
  }, [flame, rows, tree, size.height]);

  // What the search or another view has selected comes into sight.
  useLayoutEffect(() => {
    // The panel that opens below takes a part of the height.
    if (selected !== null && size.height > 0) reveal(selected);
  }, [selected, rows, size.height]);

  const pointAt = (event: MouseEvent): Pointed | null => {
    const element = canvas.current;
    if (element === null || box.current === null) return null;
    const bounds = element.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const place = Math.floor((event.clientY - bounds.top + box.current.scrollTop) / ROW);
    if (x < 0 || x >= size.width || place < 0 || place >= rows) return null;
    const row = rowAt(place);
    const ratio = devicePixelRatio || 1;
    const range = viewAt({ tree, focus, view: view.current }, row);
    const hit = hitAt(tree, row, range, Math.floor(size.width * ratio), Math.floor(x * ratio));
    return hit === null ? null : { tree, ...hit, x: event.clientX, y: event.clientY };
  };

  const select = (node: number) => {
    setCopied("");
    onSelect(node);
    setUnder(null);
    reveal(node);
  };
  const zoom = (node: number) => {
    setCopied("");
    onZoom(node);
  };
  const copy = (node: number) => {
    const name = frameName(tree, node);
    void copyText(name).then((done) => setCopied(done ? `copied ${name}` : "the browser did not allow copying"));
  };
  const actionsOf = (node: number): FrameAction[] => [
    ...frameActions(tree, node),
    { key: "c", label: "Copy the name", hint: frameName(tree, node), run: () => copy(node) },
  ];
  /** At `x` pixels of the canvas. Nothing is selected by it, so that the frame stays where it is. */
  const openMenu = (node: number, x: number) => {
    setUnder(null);
    setMenu({ tree, node, x });
  };
  /** Where the row of the menu's frame is on the screen now, whatever moved meanwhile. */
  const menuAnchor = (node: number, x: number) => {
    const bounds = canvas.current?.getBoundingClientRect() ?? { left: 0, top: 0 };
    const top = placeOf(tree.depth[node] as number) * ROW - (box.current?.scrollTop ?? 0);
    return { x: bounds.left + x, top: bounds.top + top, bottom: bounds.top + top + ROW };
  };
  /** Beside the frame: where the menu opens by key. */
  const menuAtFrame = (node: number) => {
    const { from, until } = viewAt({ tree, focus, view: view.current }, tree.depth[node] as number);
    const left = Math.max(0, (((tree.start[node] as number) - from) / (until - from)) * size.width);
    reveal(node);
    openMenu(node, left);
  };

  /** What the wheel does, by keys: into the width around a frame, and along it. */
  const lookAt = ({ key, shiftKey }: KeyboardEvent, at: number): boolean => {
    const along = shiftKey ? ALONG[key] : undefined;
    const into = INTO[key];
    const { from, until } = view.current;
    const { from: begin, until: end } = viewOf(tree, at);
    const middle = (Math.max(from, begin) + Math.min(until, end)) / 2;
    if (along !== undefined) show(moved(view.current, limits, along * (until - from)));
    else if (into !== undefined) show(scaled(view.current, limits, Math.min(Math.max(middle, from), until), into));
    return (along ?? into) !== undefined;
  };
  const walk = (event: KeyboardEvent, at: number): boolean => {
    const away = event.key === (flame ? "ArrowUp" : "ArrowDown");
    // Above the root of a sandwich stand callers: away from it is up.
    const isCaller = at >= tree.callersFrom || (at === ROOT && tree.callersFrom < tree.size && !away);
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      if (selected === null) select(focus);
      else if (at === ROOT && isCaller) select(tree.callersFrom);
      else select(neighbour(tree, at, away !== isCaller ? "down" : "up", focus));
    } else if (STEPS[event.key] !== undefined) select(neighbour(tree, at, STEPS[event.key] as Step, focus));
    else return false;
    return true;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const at = selected !== null && isVisible(tree, selected, focus) ? selected : focus;
    if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) menuAtFrame(at);
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (lookAt(event, at)) setUnder(null);
    else if (walk(event, at)) setCopied("");
    else if (event.key === "Enter" || event.key === " ") zoom(at);
    else if (event.key === "Escape") {
      setCopied("");
      clearTimeout(resting.current);
      if (focus === ROOT && part === "") glideTo(limits);
      onReset();
    } else if (event.key === "Backspace") zoom(Math.max(ROOT, tree.parent[focus] as number));
    else if ((event.key === "n" || event.key === "N") && search !== null) {
      const next = nextHit(tree, search.hits, at, event.key === "n" ? 1 : -1);
      if (next === null) return;
      if (!isVisible(tree, next, focus)) onZoom(ROOT);
      select(next);
    } else {
      const action = (selected === null ? treeActions() : actionsOf(at)).find(({ key }) => key === event.key);
      if (action === undefined) return;
      action.run();
    }
    event.preventDefault();
  };

  const spoken = copied || (selected === null ? "" : tooltipText(tree, selected, focus, measure));

  return (
    <div class="flame">
      <canvas
        ref={mapCanvas}
        class="minimap"
        role="img"
        aria-label="The whole graph in little; what is in sight is framed."
        data-testid="minimap"
        style={{ width: `${size.width}px`, height: `${MAP_HEIGHT}px` }}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          onMap(event);
        }}
        onPointerMove={onMap}
      />
      <div class="flame-scroll" ref={box} onScroll={onScroll}>
        <div class="flame-extent" style={{ height: `${Math.max(rows * ROW, 1)}px` }}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: the canvas handles its own keys, which "application" says. */}
          <canvas
            ref={canvas}
            class={hover === null ? "" : "over-frame"}
            style={style}
            role="application"
            aria-roledescription="flamegraph"
            aria-label={`Flamegraph of ${measure.title}. Arrow keys move, Enter zooms, Escape shows all, n finds the next match, Shift F10 opens the menu. The tree of frames and the table of functions hold the same as text.`}
            tabIndex={0}
            data-testid="flamegraph"
            onKeyDown={onKeyDown}
            onWheel={onWheel}
            onPointerDown={(event) => {
              if (event.button !== 0 || event.pointerType === "touch") return;
              const { clientX: x, clientY: y } = event;
              drag.current = { x, y, view: view.current, scrollTop: box.current?.scrollTop ?? 0, moves: false };
            }}
            onPointerMove={(event) => {
              if (event.pointerType === "touch" || dragged(event)) return;
              const at = pointAt(event);
              setUnder(at);
              onPoint(at === null ? null : frameName(tree, at.node));
            }}
            onPointerLeave={() => {
              setUnder(null);
              onPoint(null);
            }}
            onClick={(event) => {
              const was = drag.current;
              drag.current = null;
              const at = was?.moves ? null : pointAt(event);
              if (at !== null) zoom(at.node);
            }}
            onContextMenu={(event) => {
              const at = pointAt(event);
              if (at === null) return;
              event.preventDefault();
              openMenu(at.node, event.clientX - event.currentTarget.getBoundingClientRect().left);
            }}
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
          name={frameName(tree, open.node)}
          actions={actionsOf(open.node)}
          onClose={(back) => {
            setMenu(null);
            if (back) canvas.current?.focus();
          }}
        />
      )}
      <div class="flame-status">
        <span role="status" aria-live="polite" data-testid="selected-frame" dir="auto">
          {spoken || (
            <span class="dim">Click a frame to zoom; right click, or Shift F10, opens its menu; arrow keys move.</span>
          )}
        </span>
        {inSight.thin > 0 && (
          <span class="dim" data-testid="thin-rows">
            {plural(inSight.thin, "row")} more of frames thinner than a pixel: zoom in
          </span>
        )}
      </div>
    </div>
  );
}
