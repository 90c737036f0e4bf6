/** Ctrl K opens the palette, from everywhere; it is fetched with its first use. */
import { useState } from "preact/hooks";
import { Palette } from "../lazyViews.tsx";
import { usePageKeys } from "../ui/hooks.ts";

export function PaletteKey() {
  const [open, setOpen] = useState(false);
  usePageKeys((event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    setOpen((was) => !was);
  });
  return open ? <Palette onClose={() => setOpen(false)} /> : null;
}
