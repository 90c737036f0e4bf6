/** What opens dialogs: all keys (a button and `?`), saved views, templates of source links, a closer look. */
import { signal } from "@preact/signals";
import { type LookedAt, lookedAt } from "../../state/moments/closer.ts";
import { BurstsDialog, HelpDialog, SavedDialog, SourcesDialog } from "../lazyViews.tsx";
import { isTyping, usePageKeys } from "../ui/hooks.ts";

const DIALOGS = { help: HelpDialog, saved: SavedDialog, sources: SourcesDialog, bursts: BurstsDialog };
const open = signal<keyof typeof DIALOGS | null>(null);

export function openDialog(name: keyof typeof DIALOGS): void {
  open.value = name;
}

/** A closer look at what is pointed at. */
export function lookCloser(at: LookedAt): void {
  lookedAt.value = at;
  openDialog("bursts");
}

const button = (name: keyof typeof DIALOGS, sign: string, title: string, label: string) => (
  <button
    type="button"
    class="button icon"
    title={title}
    aria-label={label}
    aria-haspopup="dialog"
    onClick={() => openDialog(name)}
  >
    {sign}
  </button>
);

export const HelpButton = () => button("help", "?", "Keys (?)", "Keyboard help");
export const SavedButton = () => button("saved", "☆", "Saved views", "Saved views");

export function Help() {
  usePageKeys((event) => {
    if (event.key !== "?" || isTyping(event.target) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    openDialog("help");
  });
  if (open.value === null) return null;
  const Dialog = DIALOGS[open.value];
  return (
    <Dialog
      onClose={() => {
        open.value = null;
      }}
    />
  );
}
