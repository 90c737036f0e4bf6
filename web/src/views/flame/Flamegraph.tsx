/**
 * The flamegraph: a canvas as large as its viewport within a scrolling box. In: a tree, which frame is zoomed, what is
 * searched for. Out: the wish to zoom and the selected frame. Pointer and keyboard can do the same.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "../../logic/colour.ts";
import { deepestVisible, isVisible, neighbour, nodeAt, type Step, type View, viewOf } from "../../logic/layout.ts";
import { nextHit, type Search } from "../../logic/search.ts";
import { frameName, ROOT, type Tree } from "../../logic/tree.ts";
import { copyText } from "../clipboard.ts";
import { useSize } from "../hooks.ts";
import { Colours, paint, ROW } from "./paint.ts";
import { type Measure, Tooltip, tooltipText } from "./Tooltip.tsx";

interface Props {
  tree: Tree;
  focus: number;
  search: Search | null;
  selected: number | null;
  theme: Theme;
  flame: boolean;
  measure: Measure;
  onZoom: (node: number) => void;
  onSelect: (node: number | null) => void;
  onFind: (name: string) => void;
}

const ZOOM_MS = 140;
/** Rows whose frames are all narrower than this (CSS pixels) don't make the graph taller. */
const ROW_WORTH = 0.3;
const STEPS: Record<string, Step> = { ArrowLeft: "left", ArrowRight: "right", Home: "first", End: "last" };

export function Flamegraph(props: Props) {
  const { tree, focus, search, selected, theme, flame, measure, onZoom, onSelect } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(box);
  const colours = useRef<Colours | null>(null);
  const view = useRef<View>(viewOf(tree, focus));
  const [pointed, setHover] = useState<{ tree: Tree; node: number; x: number; y: number } | null>(null);
  // A frame of the tree before would be another frame in this one.
  const hover = pointed !== null && pointed.tree === tree ? pointed : null;
  const [copied, setCopied] = useState("");
  const deep = useMemo(
    () => (size.width === 0 ? 1 : deepestVisible(tree, focus, size.width, ROW_WORTH) + 1),
    [tree, focus, size.width],
  );
  // A short graph with its root at the bottom stands on the bottom of the box.
  const rows = flame ? Math.max(deep, Math.floor(size.height / ROW)) : deep;

  const draw = useRef(() => {});
  draw.current = () => {
    const element = canvas.current;
    const context = element?.getContext("2d", { alpha: false });
    if (!element || !context || !box.current || size.width === 0) return;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.floor(size.width * ratio), Math.floor(size.height * ratio)];
    if (element.width !== width || element.height !== height) {
      element.width = width;
      element.height = height;
    }
    if (colours.current === null || !colours.current.fits(tree, theme)) colours.current = new Colours(tree, theme);
    paint(
      context,
      {
        tree,
        view: view.current,
        focus,
        hits: search?.hits ?? null,
        hovered: hover?.node ?? null,
        selected,
        theme,
        flame,
        width: size.width,
        height: size.height,
        scrollTop: box.current.scrollTop,
        rows,
        ratio,
      },
      colours.current,
    );
  };

  useLayoutEffect(() => draw.current());

  useEffect(() => {
    const query = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    const redraw = () => draw.current();
    query.addEventListener("change", redraw);
    return () => query.removeEventListener("change", redraw);
  });

  // A zoom glides, so that the eye can follow it; another tree is simply there.
  const lastTree = useRef(tree);
  useLayoutEffect(() => {
    const target = viewOf(tree, focus);
    const start = view.current;
    const still = lastTree.current !== tree || matchMedia("(prefers-reduced-motion: reduce)").matches;
    lastTree.current = tree;
    if (still) {
      view.current = target;
      draw.current();
      return;
    }
    const began = performance.now();
    let frame = requestAnimationFrame(function glide(now) {
      const part = Math.min(1, (now - began) / ZOOM_MS);
      const eased = 1 - (1 - part) ** 3;
      view.current = {
        from: start.from + (target.from - start.from) * eased,
        until: start.until + (target.until - start.until) * eased,
      };
      draw.current();
      if (part < 1) frame = requestAnimationFrame(glide);
    });
    return () => cancelAnimationFrame(frame);
  }, [tree, focus]);

  const rowTop = (depth: number) => (flame ? rows - 1 - depth : depth) * ROW;
  const reveal = (node: number) => {
    const element = box.current;
    if (element === null) return;
    const top = rowTop(tree.depth[node] as number);
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW > element.scrollTop + size.height) element.scrollTop = top + ROW - size.height;
  };

  // The root is brought into sight once the graph's height is known or changes.
  useLayoutEffect(() => {
    if (box.current !== null) box.current.scrollTop = flame ? rows * ROW : 0;
  }, [flame, rows, tree]);

  const frameAt = (event: MouseEvent): number | null => {
    const element = canvas.current;
    if (element === null || box.current === null) return null;
    const bounds = element.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const row = Math.floor((event.clientY - bounds.top + box.current.scrollTop) / ROW);
    const depth = flame ? rows - 1 - row : row;
    if (x < 0 || x >= size.width || depth < 0 || depth >= rows) return null;
    const { from, until } = view.current;
    return nodeAt(tree, depth, from + ((x + 0.5) / size.width) * (until - from));
  };

  const select = (node: number) => {
    setCopied("");
    onSelect(node);
    setHover(null);
    reveal(node);
  };
  const zoom = (node: number) => {
    setCopied("");
    onSelect(node);
    onZoom(node);
  };
  const copy = (node: number) => {
    const name = frameName(tree, node);
    void copyText(name).then((done) => setCopied(done ? `copied ${name}` : "the browser did not allow copying"));
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = selected !== null && isVisible(tree, selected, focus) ? selected : focus;
    const towardsRoot = flame ? "ArrowDown" : "ArrowUp";
    const towardsLeaf = flame ? "ArrowUp" : "ArrowDown";
    if (event.key === towardsRoot) select(selected === null ? focus : neighbour(tree, at, "up", focus));
    else if (event.key === towardsLeaf) select(selected === null ? focus : neighbour(tree, at, "down", focus));
    else if (STEPS[event.key] !== undefined) select(neighbour(tree, at, STEPS[event.key] as Step, focus));
    else if (event.key === "Enter" || event.key === " ") zoom(at);
    else if (event.key === "Escape") {
      setCopied("");
      onSelect(null);
      onZoom(ROOT);
    } else if (event.key === "Backspace") zoom(Math.max(ROOT, tree.parent[focus] as number));
    else if ((event.key === "n" || event.key === "N") && search !== null) {
      const next = nextHit(tree, search.hits, at, event.key === "n" ? 1 : -1);
      if (next === null) return;
      if (!isVisible(tree, next, focus)) onZoom(ROOT);
      select(next);
    } else if (event.key === "c" && selected !== null) copy(selected);
    else if (event.key === "f" && selected !== null) props.onFind(frameName(tree, selected));
    else return;
    event.preventDefault();
  };

  const spoken = copied || (selected === null ? "" : tooltipText(tree, selected, focus, measure));

  return (
    <div class="flame">
      <div class="flame-scroll" ref={box} onScroll={() => draw.current()}>
        <div class="flame-extent" style={{ height: `${Math.max(rows * ROW, 1)}px` }}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: the canvas handles its own keys, which "application" says. */}
          <canvas
            ref={canvas}
            class={hover === null ? "" : "over-frame"}
            style={{ width: `${size.width}px`, height: `${size.height}px` }}
            role="application"
            aria-roledescription="flamegraph"
            aria-label={`Flamegraph of ${measure.title}. Arrow keys move between frames, Enter zooms, Escape shows all, n finds the next match, c copies the name. The table of functions holds the same as text.`}
            tabIndex={0}
            data-testid="flamegraph"
            onKeyDown={onKeyDown}
            onPointerMove={(event) => {
              if (event.pointerType === "touch") return;
              const node = frameAt(event);
              setHover(node === null ? null : { tree, node, x: event.clientX, y: event.clientY });
            }}
            onPointerLeave={() => setHover(null)}
            onClick={(event) => {
              const node = frameAt(event);
              if (node !== null) zoom(node);
            }}
            onContextMenu={(event) => {
              const node = frameAt(event);
              if (node === null) return;
              event.preventDefault();
              select(node);
              copy(node);
            }}
          />
        </div>
      </div>
      {hover !== null && (
        <Tooltip tree={tree} node={hover.node} focus={focus} x={hover.x} y={hover.y} measure={measure} />
      )}
      <div class="flame-status" role="status" aria-live="polite" data-testid="selected-frame">
        {spoken || (
          <span class="dim">Click a frame to zoom; arrow keys move, Enter zooms, Esc resets, right click copies.</span>
        )}
      </div>
    </div>
  );
}
