/** Two moments to choose a window by. */
import { useState } from "preact/hooks";
import { fromLocalInput, toLocalInput, type Window, zoneText } from "../../logic/time/time.ts";
import { LONGEST_MS, ordered } from "../../logic/time/windows.ts";

export function Moments({ window, onApply }: { window: Window; onApply: (window: Window) => void }) {
  const [from, setFrom] = useState(toLocalInput(window.from));
  const [until, setUntil] = useState(toLocalInput(window.until));
  const [a, b] = [fromLocalInput(from), fromLocalInput(until)];
  const fault =
    a === null || b === null
      ? "Enter both moments."
      : a >= b
        ? "The start must be before the end."
        : b - a > LONGEST_MS
          ? "At most 400 days at once."
          : "";
  return (
    <form
      class="moments"
      onSubmit={(event) => {
        event.preventDefault();
        if (a !== null && b !== null && a < b) onApply(ordered(a, b));
      }}
    >
      <label>
        From
        <input type="datetime-local" step="1" value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
      </label>
      <label>
        Until
        <input type="datetime-local" step="1" value={until} onInput={(event) => setUntil(event.currentTarget.value)} />
      </label>
      <span class="dim">{fault || `Local time of this browser, ${zoneText({ from: a ?? 0, until: b ?? 0 })}.`}</span>
      <button type="submit" class="button primary" disabled={fault !== ""}>
        Apply
      </button>
    </form>
  );
}
