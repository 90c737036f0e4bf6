/** A button that opens a small panel below itself. */
import type { ComponentChildren } from "preact";
import { useCallback, useState } from "preact/hooks";
import { useDismiss } from "./hooks.ts";

interface Props {
  label: ComponentChildren;
  name: string;
  children: (close: () => void) => ComponentChildren;
  class?: string;
}

export function Menu({ label, name, children, class: extra = "" }: Props) {
  const [open, setOpen] = useState(false);
  const close = useCallback(() => setOpen(false), []);
  const ref = useDismiss(open, close);
  return (
    <div class={`menu ${extra}`} ref={ref}>
      <button type="button" class="button" aria-expanded={open} title={name} onClick={() => setOpen(!open)}>
        {label}
      </button>
      {open && <div class="menu-panel">{children(close)}</div>}
    </div>
  );
}
