/** Which time is looked at: any range, earlier and later, live. */
import { isRelative, rangeText, type Window, zoneText } from "../../logic/time/time.ts";
import { lengthOf, shift, zoomOut } from "../../logic/time/windows.ts";
import { zoneNow } from "../../logic/time/zone.ts";
import { Moments } from "../lazyViews.tsx";
import { NARROW, useMedia } from "../ui/hooks.ts";
import { Menu } from "../ui/Menu.tsx";

interface Props {
  window: Window;
  from: string;
  until: string;
  now: number;
  live: boolean;
  onRange: (from: string, until: string) => void;
  onLive: (live: boolean) => void;
  onRefresh: () => void;
}

/** Where the bar is narrow, all stands in what the range opens. */
export function TimeRange({ window, from, until, now, live, onRange, onLive, onRefresh }: Props) {
  const isNarrow = useMedia(NARROW);
  const set = (w: Window) => onRange(String(w.from), String(w.until));
  const steps = (
    <>
      <div class="segments">
        <button
          type="button"
          title="Earlier"
          aria-label="Earlier"
          onClick={() => set(shift(window, -lengthOf(window) / 2))}
        >
          ‹
        </button>
        <button
          type="button"
          title="Zoom out"
          aria-label="Zoom out"
          data-testid="zoom-out"
          onClick={() => set(zoomOut(window, now))}
        >
          −
        </button>
        <button type="button" title="Later" aria-label="Later" onClick={() => set(shift(window, lengthOf(window) / 2))}>
          ›
        </button>
      </div>
      <div class="segments">
        <button type="button" title="Refresh" aria-label="Refresh" onClick={onRefresh}>
          ↻
        </button>
        <button
          type="button"
          aria-pressed={live}
          disabled={!isRelative(until)}
          title={isRelative(until) ? "Follow the present" : "Only a range that ends now can"}
          onClick={() => onLive(!live)}
        >
          Live
        </button>
      </div>
    </>
  );
  return (
    <div class="timerange" role="group" aria-label="Time range">
      <Menu
        label={
          <span data-testid="range-text" title={zoneText(window)}>
            {rangeText(window, now)}
            {zoneNow() === "utc" && " UTC"}
          </span>
        }
        name="Choose the time range"
        onNear={Moments.preload}
      >
        {(close) => (
          <div class="range-panel">
            {isNarrow && <div class="range-steps">{steps}</div>}
            <Moments
              window={window}
              texts={{ from, until }}
              onApply={(_, texts) => {
                onRange(texts.from, texts.until);
                close();
              }}
            />
          </div>
        )}
      </Menu>
      {!isNarrow && steps}
    </div>
  );
}
