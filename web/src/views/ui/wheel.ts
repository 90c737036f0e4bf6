/**
 * The wheel. Alone it scrolls the page, wherever the pointer is: who scrolls to read loses nothing that was chosen.
 * With Ctrl or ⌘ it zooms what is below the pointer.
 */

/** Elements that zoom carry this attribute, with what they zoom as its text. */
export const ZOOMS = "data-zooms";

export function isZoom({ ctrlKey, metaKey }: Pick<WheelEvent, "ctrlKey" | "metaKey">): boolean {
  return ctrlKey || metaKey;
}

/** Pixels of a line, for wheels that report lines. */
const LINE = 16;

/** What scrolls around an element: the nearest box around it that has room below, or else the document. */
function scrollerAround(element: Element): Element | null {
  for (let box = element.parentElement; box !== null; box = box.parentElement) {
    const takes = box === document.scrollingElement || /auto|scroll/.test(getComputedStyle(box).overflowY);
    if (takes && roomBelow(box) >= 1) return box;
  }
  return null;
}

function roomBelow({ scrollHeight, clientHeight, scrollTop }: Element): number {
  return scrollHeight - clientHeight - scrollTop;
}

/**
 * Scrolls the page where a box would take the wheel before the page is at its end: the page goes down first, and comes
 * up last, as if both were one strip. What is left to the browser is smooth as anywhere.
 */
export function scrollPageFirst(event: WheelEvent): void {
  const { deltaY, deltaMode, target } = event;
  const box = target instanceof Element ? target.closest(`[${ZOOMS}]`) : null;
  if (deltaY <= 0 || box === null) return;
  const page = scrollerAround(box);
  if (page === null) return;
  event.preventDefault();
  page.scrollTop += deltaMode === 1 ? deltaY * LINE : deltaMode === 2 ? deltaY * page.clientHeight : deltaY;
}
