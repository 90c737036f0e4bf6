/** The place of what stands beside the pointer. */
import { useLayoutEffect, useRef } from "preact/hooks";

/** CSS pixels between the pointer and what stands beside it: to the side, below, above; and to the window's edge. */
const BESIDE = { side: 14, below: 16, above: 12, edge: 8 };

/** Puts something beside the pointer (CSS pixels of the window), on the other side where there is no room. */
export function useBeside(x: number, y: number) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const box = element.current;
    if (box === null) return;
    const { width, height } = box.getBoundingClientRect();
    const { side, below, above, edge } = BESIDE;
    const left = x + side + width > innerWidth - edge ? Math.max(edge, x - side - width) : x + side;
    const top = y + below + height > innerHeight - edge ? Math.max(edge, y - above - height) : y + below;
    box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  });
  return element;
}
