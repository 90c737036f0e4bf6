/**
 * What leads from a label's value to its menu: the button beside it, the right button, Shift F10, and a long press.
 */
import { signal } from "@preact/signals";
import type { Mode } from "../../logic/series/stack.ts";
import { endsLongPress, longPress } from "../ui/hooks.ts";
import { actionOf, actOnValue, onAltEnter } from "./valueActions.ts";

export interface Value {
  label: string;
  value: string;
  mode: Mode | null;
}

/** The value whose menu is open, what it stands beside, and where. */
export const openValue = signal<(Value & { by: HTMLElement; x: number }) | null>(null);

function show(of: Value, by: HTMLElement, x: number): void {
  openValue.value = { ...of, by, x };
}

/** Of a row of a table by a label, of a layer of the chart. */
export function showValueMenu(
  label: string,
  value: string,
  by: HTMLElement,
  x: number,
  mode: Mode | null = null,
): void {
  show({ label, value, mode }, by, x);
}

/** What a button of a value does: a click takes the value, and what asks for a menu opens it. */
export function valueHandlers(label: string, value: string, mode: Mode | null = null) {
  const of = { label, value, mode };
  return {
    onClick: (event: MouseEvent) => {
      if (!endsLongPress(event)) actOnValue(label, value, actionOf(event), mode);
    },
    onKeyDown: (event: KeyboardEvent) => onAltEnter(event, (as) => actOnValue(label, value, as, mode)),
    onContextMenu: (event: MouseEvent) => {
      event.preventDefault();
      const by = event.currentTarget as HTMLElement;
      // Of keys there is no place of the pointer.
      show(of, by, event.clientX || by.getBoundingClientRect().left);
    },
    ...longPress((event) => {
      const by = event.currentTarget as HTMLElement;
      const x = event.clientX;
      return () => show(of, by, x);
    }),
  };
}

export function ValueDots({
  label,
  value,
  mode = null,
  name,
}: Omit<Value, "mode"> & { mode?: Mode | null; name: string }) {
  return (
    <button
      type="button"
      class="value-dots"
      aria-haspopup="menu"
      aria-label={`What can be done with ${label} ${name}`}
      title={`What can be done with ${name}`}
      onClick={(event) => {
        const by = event.currentTarget;
        show({ label, value, mode }, by, by.getBoundingClientRect().left);
      }}
    >
      ⋯
    </button>
  );
}
