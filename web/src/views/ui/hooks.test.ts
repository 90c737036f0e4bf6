import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { endsLongPress, longPress } from "./hooks.ts";

const at = (x: number, y: number, pointerType = "touch") => ({ clientX: x, clientY: y, pointerType }) as PointerEvent;
const click = (detail = 1) => ({ detail }) as MouseEvent;

describe("a finger that rests", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("shows the menu of what it came down on, and its end takes nothing", () => {
    const shown = vi.fn();
    const { onPointerDown, onPointerMove, onPointerUp } = longPress((event) => () => shown(event.clientX));
    onPointerDown(at(40, 10));
    onPointerMove(at(44, 14));
    vi.advanceTimersByTime(499);
    expect(shown).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(shown.mock.calls).toEqual([[40]]);
    onPointerUp();
    expect(endsLongPress(click())).toBe(true);
    expect(endsLongPress(click())).toBe(false);
  });

  it("shows none where it is lifted, moves, scrolls, or is a mouse", () => {
    const shown = vi.fn();
    const { onPointerDown, onPointerMove, onPointerUp, onPointerCancel } = longPress(() => shown);
    onPointerDown(at(40, 10));
    onPointerUp();
    vi.advanceTimersByTime(1000);
    onPointerDown(at(40, 10));
    onPointerMove(at(40, 30));
    vi.advanceTimersByTime(1000);
    onPointerDown(at(40, 10));
    onPointerCancel();
    vi.advanceTimersByTime(1000);
    onPointerDown(at(40, 10, "mouse"));
    vi.advanceTimersByTime(1000);
    expect(shown).not.toHaveBeenCalled();
    expect(endsLongPress(click())).toBe(false);
  });

  it("keeps on where what is below it is drawn anew, and ends where that ends", () => {
    const shown = vi.fn();
    longPress(() => shown).onPointerDown(at(40, 10));
    // The handlers of a later render.
    longPress(() => shown).onPointerUp();
    vi.advanceTimersByTime(1000);
    expect(shown).not.toHaveBeenCalled();
  });

  it("shows none where nothing has a menu, and takes no key for its end", () => {
    longPress(() => null).onPointerDown(at(40, 10));
    vi.advanceTimersByTime(1000);
    expect(endsLongPress(click())).toBe(false);
    longPress(() => () => {}).onPointerDown(at(40, 10));
    vi.advanceTimersByTime(1000);
    expect(endsLongPress(click(0))).toBe(false);
  });
});
