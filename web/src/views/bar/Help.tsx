/** What opens the list of all keys: a button and `?`. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { HelpDialog } from "../lazyViews.tsx";
import { isTyping } from "../ui/hooks.ts";

const open = signal(false);

export function HelpButton() {
  return (
    <button
      type="button"
      class="button icon"
      title="Keys (?)"
      aria-label="Keyboard help"
      aria-haspopup="dialog"
      onClick={() => {
        open.value = true;
      }}
    >
      ?
    </button>
  );
}

export function Help() {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "?" || isTyping(event.target) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      open.value = true;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const close = () => {
    open.value = false;
  };
  return open.value ? <HelpDialog onClose={close} /> : null;
}
