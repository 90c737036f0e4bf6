/** What opens dialogs: the list of all keys (a button and `?`), saved views, templates of source links. */
import { signal } from "@preact/signals";
import { HelpDialog, SavedDialog, SourcesDialog } from "../lazyViews.tsx";
import { isTyping, usePageKeys } from "../ui/hooks.ts";

const DIALOGS = { help: HelpDialog, saved: SavedDialog, sources: SourcesDialog };
const open = signal<keyof typeof DIALOGS | null>(null);

export function openDialog(name: keyof typeof DIALOGS): void {
  open.value = name;
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
