/** Zooms a chart of time by the wheel and by keys: at once on the screen, and for the server once the hand rests. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isSame, type Window, zoomAround } from "../../logic/time/windows.ts";

/** One step of the wheel's zoom; what a wheel reports for a notch is about a hundred. */
const ZOOM_STEP = 1.25;
const NOTCH = 100;
/** A gesture of the wheel is over after this pause: only then the server is asked. */
const SETTLED_MS = 220;

/** `answer`: what the server told, whose window is shown until a hand zooms. */
export function useZoom(answer: Window, onRange: (window: Window) => void) {
  const [zoomed, setZoomed] = useState<Window | null>(null);
  const range: Window = useMemo(() => zoomed ?? { from: answer.from, until: answer.until }, [answer, zoomed]);
  /** Whether the server was not yet asked for what a hand chose. */
  const isUnasked = useRef(false);
  useEffect(() => {
    // What arrives in the middle of a gesture answers an older question, and must not undo it.
    if (!isUnasked.current) setZoomed(null);
  }, [answer]);
  useEffect(() => {
    if (zoomed === null) return;
    isUnasked.current = true;
    const timer = setTimeout(() => {
      isUnasked.current = false;
      onRange(zoomed);
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [zoomed]);
  /** Around a moment: in for positive steps. */
  const zoom = (moment: number, steps: number) => {
    const next = zoomAround(range, moment, ZOOM_STEP ** -steps, Date.now());
    if (!isSame(next, range)) setZoomed(next);
  };
  return { range, zoom, onWheel: (moment: number, delta: number) => zoom(moment, -delta / NOTCH) };
}
