/** The menu of a frame, below or above it. Arrow keys move, Enter takes, Escape goes back to the graph. */
import { useLayoutEffect, useRef } from "preact/hooks";

/** What can be done with a frame, by key and from its menu. */
export interface FrameAction {
  key: string;
  label: string;
  hint: string;
  run: () => void;
}

export interface FrameMenuProps {
  /** Where the frame is on the screen: the menu stays beside it. */
  anchor: () => { x: number; top: number; bottom: number };
  name: string;
  actions: readonly FrameAction[];
  onClose: (back: boolean) => void;
}

const MOVES: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, Home: Number.NEGATIVE_INFINITY, End: 1e9 };
const MARGIN = 8;
const GAP = 2;
/** CSS pixels of a menu, however little is left beside its frame. */
const LEAST_ROOM = 120;

export function FrameMenu({ anchor, name, actions, onClose }: FrameMenuProps) {
  const box = useRef<HTMLDivElement>(null);
  const place = () => {
    const element = box.current;
    if (element === null) return;
    element.style.maxHeight = "";
    const { width, height } = element.getBoundingClientRect();
    const frame = anchor();
    const left = Math.max(MARGIN, Math.min(frame.x, innerWidth - width - MARGIN));
    const below = innerHeight - MARGIN - GAP - frame.bottom;
    const above = frame.top - GAP - MARGIN;
    const isBelow = height <= below || below >= above;
    // Never over the frame: where neither side has room for all, the menu scrolls. Where the frame itself is out of
    // sight, the menu is not.
    const room = Math.max(LEAST_ROOM, isBelow ? below : above);
    const beside = isBelow ? frame.bottom + GAP : frame.top - GAP - Math.min(height, room);
    const top = Math.max(MARGIN, Math.min(beside, innerHeight - Math.min(height, room) - MARGIN));
    element.style.maxHeight = `${Math.round(room)}px`;
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  };
  useLayoutEffect(() => {
    place();
    box.current?.querySelector("button")?.focus();
  }, []);
  // What comes into the page above the graph moves its frames.
  useLayoutEffect(place);
  useLayoutEffect(() => {
    const moved = new ResizeObserver(place);
    for (const element of document.querySelectorAll("main > *")) moved.observe(element);
    addEventListener("scroll", place, true);
    return () => {
      moved.disconnect();
      removeEventListener("scroll", place, true);
    };
  }, []);
  // Listens as soon as it is there: a passive effect comes a frame later, and what happens between the two would be
  // missed.
  useLayoutEffect(() => {
    const onPointer = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) onClose(false);
    };
    const { innerWidth: width } = window;
    // Frames move with the width of the window. Its height alone changes where a phone shows or hides the browser's own
    // bars.
    const resized = () => (innerWidth === width ? place() : onClose(false));
    addEventListener("pointerdown", onPointer, true);
    addEventListener("resize", resized);
    return () => {
      removeEventListener("pointerdown", onPointer, true);
      removeEventListener("resize", resized);
    };
  }, [onClose]);

  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    const items = [...(box.current?.querySelectorAll("button") ?? [])];
    const at = items.indexOf(document.activeElement as HTMLButtonElement);
    const by = MOVES[event.key];
    if (event.key === "Escape" || event.key === "Tab") onClose(true);
    else if (by !== undefined) items[Math.min(Math.max(at + by, 0), items.length - 1)]?.focus();
    else {
      const action = actions.find(({ key }) => key === event.key && key !== "Enter");
      if (action === undefined) return;
      onClose(true);
      action.run();
    }
    event.preventDefault();
  };

  return (
    <div class="frame-menu" ref={box} role="menu" tabIndex={-1} aria-label={name} onKeyDown={onKeyDown}>
      {actions.map((action) => (
        <button
          key={action.key}
          type="button"
          role="menuitem"
          title={action.hint}
          onClick={() => {
            onClose(true);
            action.run();
          }}
        >
          <span dir="auto">{action.label}</span>
          <kbd>{action.key === "Enter" ? "↵" : action.key}</kbd>
        </button>
      ))}
    </div>
  );
}
