/** What the page did by itself, as long as what it is about is on the screen. */
import { isAbout, said, unsay } from "../../state/moments/said.ts";

export function SaidNote() {
  const note = said.value;
  if (note === null || !isAbout(note)) return null;
  return (
    <div class={`said-note${note.isBad ? " bad" : ""}`} role="status" data-testid="said">
      <span dir="auto">{note.text}</span>
      <button type="button" class="button icon" aria-label="Close" onClick={unsay}>
        ✕
      </button>
    </div>
  );
}
