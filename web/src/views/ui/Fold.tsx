/** A button that unfolds controls; whether they are in sight stands in the address. */
import type { ComponentChildren } from "preact";
import { type Fold, isOpen, toggle } from "../../state/address/page.ts";

interface Props {
  fold: Fold;
  /** What it unfolds, read behind what the button shows. */
  name: string;
  title?: string;
  class?: string;
  children: ComponentChildren;
}

export function FoldButton({ fold, name, title = name, class: extra = "", children }: Props) {
  return (
    <button
      type="button"
      class={`button ${extra}`}
      aria-expanded={isOpen(fold)}
      title={title}
      data-testid={`fold-${fold}`}
      onClick={() => toggle(fold)}
    >
      {children}
      <span class="visually-hidden"> {name}</span>
    </button>
  );
}
