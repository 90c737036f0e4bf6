/** Ctrl K opens the palette, from everywhere, and so does a button: a finger has no Ctrl. It is fetched when wanted. */
import { signal } from "@preact/signals";
import { Palette } from "../lazyViews.tsx";
import { usePageKeys } from "../ui/hooks.ts";

const open = signal(false);

export function PaletteKey() {
  usePageKeys((event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    open.value = !open.value;
  });
  if (!open.value) return null;
  return (
    <Palette
      onClose={() => {
        open.value = false;
      }}
    />
  );
}

/** `isWord`: where there are fingers rather than keys. */
export function PaletteButton({ isWord = false }: { isWord?: boolean }) {
  const keys = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘ K" : "Ctrl K";
  return (
    <button
      type="button"
      class="button palette-button"
      title={`Go to a view, a value, a function or an action (${keys})`}
      aria-label={isWord ? `Go to … (${keys})` : `${keys}: go to …`}
      aria-haspopup="dialog"
      onPointerEnter={Palette.preload}
      onFocus={Palette.preload}
      onClick={() => {
        open.value = true;
      }}
    >
      {isWord ? "Go to …" : keys}
    </button>
  );
}
