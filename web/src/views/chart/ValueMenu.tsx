/**
 * All that can be done with a label's value, as a menu: by the button beside it, the right button, Shift F10, and a
 * long press. There is one menu, which stands where it was asked for.
 */
import { signal } from "@preact/signals";
import type { LabelMatcher } from "../../logic/labels/selector.ts";
import type { Mode } from "../../logic/series/stack.ts";
import { navigate, page } from "../../state/address/page.ts";
import { compareVersionsOf } from "../../state/moments/said.ts";
import type { FrameAction } from "../flame/FrameMenu.tsx";
import { FrameMenu } from "../lazyViews.tsx";
import { copyText } from "../ui/clipboard.ts";
import { actionOf, actOnValue, onAltEnter, withoutValue } from "./valueActions.ts";

interface Value {
  label: string;
  value: string;
  mode: Mode | null;
}

const open = signal<(Value & { by: HTMLElement; x: number }) | null>(null);

const LONG_PRESS_MS = 500;

function show(of: Value, by: HTMLElement, x: number): void {
  open.value = { ...of, by, x };
}

/** Of a row of a table by a label. */
export function showValueMenu(label: string, value: string, by: HTMLElement, x: number): void {
  show({ label, value, mode: null }, by, x);
}

/** What a button of a value does: a click takes the value, and what asks for a menu opens it. */
export function valueHandlers(label: string, value: string, mode: Mode | null = null) {
  const of = { label, value, mode };
  let press: ReturnType<typeof setTimeout> | undefined;
  let isLong = false;
  return {
    onClick: (event: MouseEvent) => {
      if (isLong) isLong = false;
      else actOnValue(label, value, actionOf(event), mode);
    },
    onKeyDown: (event: KeyboardEvent) => onAltEnter(event, (as) => actOnValue(label, value, as, mode)),
    onContextMenu: (event: MouseEvent) => {
      event.preventDefault();
      const by = event.currentTarget as HTMLElement;
      // Of keys there is no place of the pointer.
      show(of, by, event.clientX || by.getBoundingClientRect().left);
    },
    onPointerDown: (event: PointerEvent) => {
      isLong = false;
      if (event.pointerType !== "touch") return;
      const by = event.currentTarget as HTMLElement;
      const x = event.clientX;
      press = setTimeout(() => {
        isLong = true;
        show(of, by, x);
      }, LONG_PRESS_MS);
    },
    onPointerUp: () => clearTimeout(press),
    onPointerCancel: () => clearTimeout(press),
    onPointerLeave: () => clearTimeout(press),
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

/** `within`: other values that this one is looked at in; copying is then the graph's own. */
export function valueActions({ label, value, mode }: Value, within: readonly LabelMatcher[] | null = null) {
  const act = (as: Parameters<typeof actOnValue>[2]) => () => actOnValue(label, value, as, mode, within ?? []);
  const isBase = page.value.view === "compare";
  const actions: FrameAction[] = [
    { key: "f", label: "Filter", hint: "Only this", run: act("only") },
    ...(mode === null
      ? [{ key: "x", label: "Exclude", hint: "All but this, wherever it is", run: () => withoutValue(label, value) }]
      : []),
    { key: "r", label: "Compare with the rest", hint: "This against all else in this window", run: act("rest") },
    {
      key: "b",
      label: isBase ? "Make baseline" : "Make baseline of a comparison",
      hint: "Side A of a comparison",
      run: act("base"),
    },
    ...(/^(service|version|service\.version)$/.test(label)
      ? [
          {
            key: "v",
            label: "Compare versions",
            hint: "The two with most samples in this window, equally long",
            run: () => (label === "service" ? compareVersionsOf(value) : compareVersionsOf(null, [value])),
          },
        ]
      : []),
    { key: "g", label: `Group by ${label}`, hint: "Layers of the chart", run: () => navigate({ by: label }) },
  ];
  if (within === null) actions.push({ key: "c", label: "Copy", hint: value, run: () => void copyText(value) });
  return actions;
}

export function ValueMenu() {
  const shown = open.value;
  if (shown === null) return null;
  const { by, x, value } = shown;
  return (
    <FrameMenu
      key={`${shown.label} ${value}`}
      anchor={() => {
        const { top, bottom } = by.getBoundingClientRect();
        return { x, top, bottom };
      }}
      name={`of ${shown.label} ${value}`}
      actions={valueActions(shown)}
      onClose={(back) => {
        open.value = null;
        if (back && by.isConnected) by.focus();
      }}
    />
  );
}
