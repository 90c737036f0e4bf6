/** Small hooks that several views share. */
import type { RefObject } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Size {
  width: number;
  height: number;
}

/** The content box of an element in whole CSS pixels; zero in the first render only, which is never seen. */
export function useSize(ref: RefObject<HTMLElement | null>): Size {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const measure = () => {
      const width = Math.floor(element.clientWidth);
      const height = Math.floor(element.clientHeight);
      setSize((old) => (old.width === width && old.height === height ? old : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    // What is printed is laid out at once, and no observer is asked.
    addEventListener("beforeprint", measure);
    addEventListener("afterprint", measure);
    return () => {
      observer.disconnect();
      removeEventListener("beforeprint", measure);
      removeEventListener("afterprint", measure);
    };
  }, [ref]);
  return size;
}

/** A canvas of a moment: CSS pixels, and how many of the screen's there are to each. */
export interface Surface extends Size {
  ratio: number;
}

export type Paint = (context: CanvasRenderingContext2D, surface: Surface) => void;

/** Reads the colours of the page's style that hold for an element. */
export function styleOf(element: Element): (name: string) => string {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(name).trim();
}

const NOTHING = () => {};

/** Where the page's style has other colours than its theme says; as in `style/base.css`. */
const OTHER_COLOURS = ["(prefers-contrast: more)", "(forced-colors: active)"];

/**
 * A canvas as large as the content of its box, sharp on every screen. It is painted when its size, the density of the
 * screen, the contrast that is asked for or one of `of` changes (after every render where that is left out; by the
 * caller where it is null), and by `draw`; what moves with the pointer is painted once a frame, by `drawSoon`.
 */
export function useCanvas(paint: Paint, of?: readonly unknown[] | null) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(box);
  const newest = useRef(() => {});
  const planned = useRef(0);
  newest.current = () => {
    const element = canvas.current;
    const context = element?.getContext("2d", { alpha: false });
    if (!element || !context || size.width === 0) return;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.floor(size.width * ratio), Math.floor(size.height * ratio)];
    // Setting a canvas's size clears it, also where it stays the same.
    if (element.width !== width || element.height !== height) [element.width, element.height] = [width, height];
    paint(context, { ...size, ratio });
  };
  const draw = useCallback(() => newest.current(), []);
  const drawSoon = useCallback(() => {
    cancelAnimationFrame(planned.current);
    planned.current = requestAnimationFrame(draw);
  }, []);
  useLayoutEffect(of === null ? NOTHING : draw, of === null ? [] : of && [size, ...of]);
  useEffect(() => () => cancelAnimationFrame(planned.current), []);
  useEffect(() => {
    const queries = [`(resolution: ${devicePixelRatio}dppx)`, ...OTHER_COLOURS].map((query) => matchMedia(query));
    for (const query of queries) query.addEventListener("change", draw);
    return () => {
      for (const query of queries) query.removeEventListener("change", draw);
    };
  });
  return { box, canvas, size, style: { width: `${size.width}px`, height: `${size.height}px` }, draw, drawSoon };
}

export type Drawn = ReturnType<typeof useCanvas>;

/**
 * Listens to the keys of the whole page while `active`. It listens with the render itself, not after its picture: a key
 * that is pressed as soon as the page is there counts.
 */
export function usePageKeys(onKey: (event: KeyboardEvent) => void, active = true) {
  const newest = useRef(onKey);
  newest.current = onKey;
  useLayoutEffect(() => {
    if (!active) return;
    const listen = (event: KeyboardEvent) => newest.current(event);
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [active]);
}

/**
 * For lists whose order follows answers: an element that is moved in the document loses the focus, and has it again
 * behind this.
 */
export function useKeptFocus() {
  const had = document.activeElement;
  useLayoutEffect(() => {
    const isLost = document.activeElement === document.body || document.activeElement === null;
    if (isLost && had instanceof HTMLElement && had !== document.body && had.isConnected)
      had.focus({ preventScroll: true });
  });
}

/**
 * Closes something that lies open when the person clicks elsewhere or presses Escape; the focus goes back to its
 * button.
 */
export function useDismiss(open: boolean, close: () => void) {
  const ref = useRef<HTMLDivElement>(null);
  usePageKeys((event) => {
    if (event.key !== "Escape") return;
    // What had the focus goes away.
    if (ref.current?.contains(document.activeElement)) ref.current.querySelector("button")?.focus();
    close();
  }, open);
  useEffect(() => {
    if (!open) return;
    const onPointer = (event: PointerEvent) => {
      if (ref.current !== null && !ref.current.contains(event.target as Node)) close();
    };
    addEventListener("pointerdown", onPointer, true);
    return () => removeEventListener("pointerdown", onPointer, true);
  }, [open, close]);
  return ref;
}

/**
 * A modal dialog over the page: shown once it is there, and left once, by whatever comes first. The browser tells of a
 * closed dialog with a later task only; until then a key that opens it again would find it open still, and be lost.
 */
export function useDialog(onClose: () => void) {
  const ref = useRef<HTMLDialogElement>(null);
  const isLeft = useRef(false);
  const leave = () => {
    if (isLeft.current) return;
    isLeft.current = true;
    ref.current?.close();
    onClose();
  };
  useEffect(() => ref.current?.showModal(), []);
  const onClick = (event: MouseEvent) => {
    // What surrounds its content: a click beside it.
    if (event.target === event.currentTarget) leave();
  };
  return { leave, dialog: { ref, onCancel: leave, onClose: leave, onClick } };
}

/** Fields that take letters: a check box, a slider and a list do not. */
const TAKES_TEXT = new Set("text search url email tel password number date time datetime-local month week".split(" "));

/** Whether a key goes into a text, and is no command to the page. */
export function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return TAKES_TEXT.has(target.type);
  return target instanceof HTMLTextAreaElement || (target instanceof HTMLElement && target.isContentEditable);
}

/** A screen of a phone's width; as in `style/screens.css`. */
export const PHONE = "(max-width: 560px)";
/** One that is narrower than a graph with something beside it. */
export const NARROW = "(max-width: 900px)";

/** Whether a media query holds, now and when it changes. */
export function useMedia(query: string): boolean {
  const [holds, setHolds] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const follow = () => setHolds(media.matches);
    follow();
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, [query]);
  return holds;
}

const LONG_PRESS_MS = 500;
/** CSS pixels that a finger that rests may move. */
const RESTS_WITHIN = 10;

/** One finger presses at a time; what is drawn anew below it stays pressed. */
let press: { x: number; y: number; timer: ReturnType<typeof setTimeout> } | null = null;
let wasLong = false;

function endPress(): void {
  clearTimeout(press?.timer);
  press = null;
}

/**
 * A finger that rests asks for a menu, as the right button does: Safari on phones tells of no such wish. Browsers that
 * do tell of it show the same menu twice, which is one. `menuOf` is asked as the finger comes down, and says what shows
 * the menu, or null for none.
 */
export function longPress(menuOf: (event: PointerEvent) => (() => void) | null) {
  return {
    onPointerDown: (event: PointerEvent) => {
      endPress();
      wasLong = false;
      const show = event.pointerType === "touch" ? menuOf(event) : null;
      if (show === null) return;
      const timer = setTimeout(() => {
        press = null;
        wasLong = true;
        show();
      }, LONG_PRESS_MS);
      press = { x: event.clientX, y: event.clientY, timer };
    },
    onPointerMove: ({ clientX, clientY }: PointerEvent) => {
      if (press !== null && Math.hypot(clientX - press.x, clientY - press.y) > RESTS_WITHIN) endPress();
    },
    onPointerUp: endPress,
    onPointerCancel: endPress,
    onPointerLeave: endPress,
  };
}

/** Whether a click is the end of a long press, which takes nothing. A click by a key is none. */
export function endsLongPress({ detail }: MouseEvent): boolean {
  const ends = wasLong && detail !== 0;
  wasLong = false;
  return ends;
}
