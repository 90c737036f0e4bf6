/** A button that opens a small panel below itself. */
import type { ComponentChildren } from "preact";
import { useCallback, useState } from "preact/hooks";
import { useDismiss } from "./hooks.ts";

interface Props {
  label: ComponentChildren;
  name: string;
  children: (close: () => void) => ComponentChildren;
  class?: string;
  /** The pointer or the focus is on the button: what opens may be fetched now. */
  onNear?: () => void;
}

export function Menu({ label, name, children, class: extra = "", onNear }: Props) {
  const [open, setOpen] = useState(false);
  const close = useCallback(() => setOpen(false), []);
  const ref = useDismiss(open, close);
  return (
    <div class={`menu ${extra}`} ref={ref}>
      <button
        type="button"
        class="button"
        aria-expanded={open}
        // Dots are no name.
        aria-label={label === "⋯" ? name : undefined}
        title={name}
        onPointerEnter={onNear}
        onFocus={onNear}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && <div class="menu-panel">{children(close)}</div>}
    </div>
  );
}

interface ActionProps {
  title: string;
  purpose: string;
  onTake: () => void;
  id?: string;
}

/** A line of a menu: what it does, and what for. */
export function MenuAction({ title, purpose, onTake, id }: ActionProps) {
  return (
    <li>
      <button type="button" data-testid={id} onClick={onTake}>
        <b>{title}</b>
        <small>{purpose}</small>
      </button>
    </li>
  );
}
