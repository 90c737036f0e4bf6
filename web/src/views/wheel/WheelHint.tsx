/** Says once that Ctrl and the wheel zoom: where somebody turns the wheel alone over something that can be zoomed. */
import { useEffect, useState } from "preact/hooks";
import { keep, kept } from "../../state/screen/kept.ts";
import { WheelHintText } from "../lazyViews.tsx";
import { isZoom, ZOOMS } from "../ui/wheel.ts";

const KEPT = "wheel-hint";
const SHOWN_MS = 4000;

export function WheelHint() {
  const [at, setAt] = useState<{ x: number; y: number; what: string } | null>(null);
  useEffect(() => {
    if (kept(KEPT) !== null) return;
    const onWheel = (event: WheelEvent) => {
      const zooms = event.target instanceof Element ? event.target.closest(`[${ZOOMS}]`) : null;
      if (zooms === null || event.deltaY === 0 || event.shiftKey) return;
      removeEventListener("wheel", onWheel, true);
      keep(KEPT, "said");
      // Who zooms already needs no hint.
      if (!isZoom(event)) setAt({ x: event.clientX, y: event.clientY, what: zooms.getAttribute(ZOOMS) ?? "" });
    };
    addEventListener("wheel", onWheel, { capture: true, passive: true });
    return () => removeEventListener("wheel", onWheel, true);
  }, []);
  useEffect(() => {
    if (at === null) return;
    const timer = setTimeout(() => setAt(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [at]);
  return at === null ? null : <WheelHintText {...at} />;
}
