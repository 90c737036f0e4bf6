/**
 * What of the tree's width is in sight. In: the zoomed frame, and the part of its width that the address has. Out: the
 * range that is drawn, which glides to what the address says and follows the hand at once.
 */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { partOf, partText, type View, viewOf } from "../../logic/flame/layout.ts";
import { ROOT, type Tree } from "../../logic/tree/tree.ts";
import type { Drawn } from "../ui/hooks.ts";

interface Given {
  tree: Tree;
  focus: number;
  /** As `partText` writes it. */
  part: string;
  onPart: (part: string) => void;
  onceRested: OnceRested;
}

/**
 * Takes what a hand has begun once it rests, or undoes it; what the same one begins again takes its place. What is
 * returned gives it up.
 */
export type OnceRested = (begun: { name: string; by: object; take: () => void; undo: () => void }) => () => void;

const ZOOM_MS = 140;
/** Who asks the system for less motion sees where a zoom leads, and not the way. */
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export type Range = ReturnType<typeof useRange>;

/** Who uses it draws what has changed, unless it glides: then each step is drawn from here. */
export function useRange({ tree, focus, part, onPart, onceRested }: Given, { draw, drawSoon }: Drawn) {
  const limits = viewOf(tree, focus);
  const view = useRef<View>(partOf(part, limits));
  /** What the hand shows, as the address will have it; null once the address has it. */
  const hand = useRef<{ part: string; giveUp: () => void } | null>(null);
  const newest = useRef({ part, limits, onPart });
  newest.current = { part, limits, onPart };

  /** The next step; 0 while nothing glides. */
  const gliding = useRef(0);
  const stop = () => {
    cancelAnimationFrame(gliding.current);
    gliding.current = 0;
  };
  const glideTo = (target: View) => {
    const start = view.current;
    const began = performance.now();
    stop();
    gliding.current = requestAnimationFrame(function glide(now) {
      const part = Math.min(1, Math.max(0, now - began) / ZOOM_MS);
      const eased = 1 - (1 - part) ** 3;
      view.current = {
        from: start.from + (target.from - start.from) * eased,
        until: start.until + (target.until - start.until) * eased,
      };
      draw();
      gliding.current = part < 1 ? requestAnimationFrame(glide) : 0;
    });
  };

  // A zoom glides, so that the eye can follow it; another tree is simply there.
  const lastTree = useRef(tree);
  useLayoutEffect(() => {
    const still = lastTree.current !== tree || isStill();
    // An answer in the middle of a gesture leaves in sight what the hand shows: the same part of the new width.
    const target = partOf(hand.current?.part ?? part, limits);
    lastTree.current = tree;
    if (still) view.current = target;
    else if (hand.current === null && partText(view.current, limits) !== part) glideTo(target);
    return stop;
  }, [tree, focus, part]);

  // The address follows once the wheel or the pointer rests.
  useEffect(() => () => hand.current?.giveUp(), []);
  const show = (seen: View) => {
    view.current = seen;
    drawSoon();
    const shown = partText(seen, limits);
    const take = () => {
      hand.current = null;
      newest.current.onPart(shown);
    };
    const undo = () => {
      hand.current = null;
      view.current = partOf(newest.current.part, newest.current.limits);
      draw();
    };
    hand.current = { part: shown, giveUp: onceRested({ name: "part", by: hand, take, undo }) };
  };

  /** What the hand chose is given up; where the address has nothing to give up, all comes into sight from here. */
  const reset = () => {
    hand.current?.giveUp();
    hand.current = null;
    if (focus !== ROOT || part !== "") return;
    if (isStill()) {
      view.current = limits;
      draw();
    } else glideTo(limits);
  };

  return { limits, view, show, reset, isGliding: () => gliding.current !== 0 };
}
