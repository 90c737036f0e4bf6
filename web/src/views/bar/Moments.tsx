/** Chooses a window: one field that takes a range as typed or pasted, lengths up to now, and the zone of times. */
import { useId, useState } from "preact/hooks";
import { EXAMPLES, type RangeTexts, rangeInput, readRange } from "../../logic/time/readRange.ts";
import { rangeText, type Window, zoneText } from "../../logic/time/time.ts";
import { windowOf } from "../../logic/time/windows.ts";
import { navigate, page } from "../../state/address/page.ts";
import { present } from "../../state/question/question.ts";
import { Segments } from "../ui/Choice.tsx";

interface Props {
  window: Window;
  /** As the address holds the window, where it may follow the present: lengths up to now are offered then. */
  texts?: RangeTexts;
  onApply: (window: Window, texts: RangeTexts) => void;
}

const LENGTHS = ["5m", "15m", "30m", "1h", "3h", "6h", "12h", "24h", "2d", "7d", "30d", "90d"] as const;
const ZONES = [
  ["local", "Local", "The time zone of this browser"],
  ["utc", "UTC", "As tickets and logs often have it"],
] as const;

export function Moments({ window, texts, onApply }: Props) {
  const id = useId();
  const { tz } = page.value;
  const shown = () => rangeInput(texts ?? { from: "", until: "" }, window, present.value);
  // What was typed is kept when the zone changes; what was not is told in the new one.
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? shown();
  const now = Date.now();
  const read = readRange(text, now);
  const fault = "fault" in read ? read.fault : null;
  const chosen = "fault" in read ? null : windowOf(read, now);
  return (
    <form
      class="moments"
      onSubmit={(event) => {
        event.preventDefault();
        if (!("fault" in read)) onApply(windowOf(read, now), read);
      }}
    >
      <label for={id}>Time range</label>
      <input
        id={id}
        type="text"
        value={text}
        spellcheck={false}
        autoComplete="off"
        aria-invalid={fault !== null}
        aria-describedby={`${id}-said`}
        data-testid="range-field"
        // biome-ignore lint/a11y/noAutofocus: the panel was opened for this field.
        autoFocus
        onFocus={(event) => event.currentTarget.select()}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <p id={`${id}-said`} class={fault === null ? "dim" : "warn-text"} role="status" data-testid="range-said">
        {fault ?? (chosen !== null && `${rangeText(chosen, now)}, ${zoneText(chosen)}`)}
      </p>
      <p class="dim examples">
        For example{" "}
        {EXAMPLES.map((example) => (
          <code key={example}>{example}</code>
        ))}
      </p>
      {texts !== undefined && (
        <div class="lengths" role="group" aria-label="Last">
          {LENGTHS.map((length) => (
            <button
              key={length}
              type="button"
              class="button tiny"
              aria-pressed={texts.until === "now" && texts.from === `now-${length}`}
              onClick={() => {
                const chosenTexts = { from: `now-${length}`, until: "now" };
                onApply(windowOf(chosenTexts, now), chosenTexts);
              }}
            >
              {length}
            </button>
          ))}
        </div>
      )}
      <div class="moments-end">
        <Segments name="Time zone" value={tz} options={ZONES} onChoose={(zone) => navigate({ tz: zone })} />
        <span class="spring" />
        <button type="submit" class="button primary" disabled={fault !== null}>
          Apply
        </button>
      </div>
    </form>
  );
}
