/** Zooms a chart of time by the wheel and by keys: at once on the screen, and for the server once the hand rests. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isSame, type Window, zoomAround } from "../../logic/time/windows.ts";
import { fields, onceRested } from "../../state/address/page.ts";

/** One step of the wheel's zoom; what a wheel reports for a notch is about a hundred. */
const ZOOM_STEP = 1.25;
const NOTCH = 100;

/** The time that the charts are asked for, as the address has it. */
const askedNow = () =>
  (["from", "until", "chartFrom", "chartUntil"] as const).map((name) => fields[name].value).join(" ");

/**
 * `answer`: what the server told, whose window is shown until a hand zooms. `onRange` changes the address, as a part of
 * the gesture `wheel`.
 */
export function useZoom(answer: Window, onRange: (window: Window) => void) {
  const [zoomed, setZoomed] = useState<Window | null>(null);
  const range: Window = useMemo(() => zoomed ?? { from: answer.from, until: answer.until }, [answer, zoomed]);
  /** Gives up what a hand chose, while nobody was asked for it. */
  const giveUp = useRef<(() => void) | null>(null);
  /** What was asked for because of a hand. */
  const taken = useRef("");
  const asked = askedNow();
  useEffect(() => {
    // What arrives in the middle of a gesture answers an older question, and must not undo it.
    if (giveUp.current === null) setZoomed(null);
  }, [answer]);
  useEffect(() => {
    // Something else is asked for than what is zoomed to, as Back does before the answer is there.
    if (giveUp.current === null && asked !== taken.current) setZoomed(null);
  }, [asked]);
  useEffect(() => () => giveUp.current?.(), []);
  /** Around a moment: in for positive steps. */
  const zoom = (moment: number, steps: number) => {
    const next = zoomAround(range, moment, ZOOM_STEP ** -steps, Date.now());
    if (isSame(next, range)) return;
    setZoomed(next);
    const take = () => {
      giveUp.current = null;
      onRange(next);
      taken.current = askedNow();
    };
    const undo = () => {
      giveUp.current = null;
      setZoomed(null);
    };
    giveUp.current = onceRested({ name: "wheel", by: giveUp, take, undo });
  };
  return { range, zoom, onWheel: (moment: number, delta: number) => zoom(moment, -delta / NOTCH) };
}
