/** A box to check, with its words. */
import type { ComponentChildren } from "preact";

interface Props {
  checked: boolean;
  onToggle: () => void;
  title?: string;
  id?: string;
  children: ComponentChildren;
}

export function Check({ checked, onToggle, title, id, children }: Props) {
  return (
    <label class="inline check" title={title}>
      <input type="checkbox" checked={checked} data-testid={id} onChange={onToggle} /> {children}
    </label>
  );
}
