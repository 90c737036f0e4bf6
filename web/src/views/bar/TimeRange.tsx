/** Which time is looked at: quick ranges, two moments, earlier and later, live. */
import { isRelative, rangeText, type Window, zoneText } from "../../logic/time/time.ts";
import { lengthOf, shift, zoomOut } from "../../logic/time/windows.ts";
import { Moments } from "../lazyViews.tsx";
import { Segments } from "../ui/Choice.tsx";
import { Menu } from "../ui/Menu.tsx";

const QUICK = ["5m", "15m", "1h", "6h", "24h", "7d"] as const;

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

export function TimeRange({ window, from, until, now, live, onRange, onLive, onRefresh }: Props) {
  const set = (w: Window) => onRange(String(w.from), String(w.until));
  return (
    <div class="timerange" role="group" aria-label="Time range">
      <Segments
        name="Up to now"
        value={until === "now" ? from : ""}
        options={QUICK.map((length) => [`now-${length}`, length])}
        onChoose={(begin) => onRange(begin, "now")}
      />
      <Menu
        label={
          <span data-testid="range-text" title={zoneText(window)}>
            {rangeText(window, now)}
          </span>
        }
        name="Choose the time range"
        class="to-left"
        onNear={Moments.preload}
      >
        {(close) => (
          <Moments
            window={window}
            onApply={(w) => {
              set(w);
              close();
            }}
          />
        )}
      </Menu>
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
        <button type="button" title="Ask again" aria-label="Refresh" onClick={onRefresh}>
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
    </div>
  );
}
