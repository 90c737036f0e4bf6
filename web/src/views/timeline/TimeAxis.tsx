/** The time axis of a timeline, above it. */
import { momentText, type Range } from "../../logic/flame/timeline.ts";
import { timeTicks } from "../../logic/time/ticks.ts";
import { tickLabels, zoneOf } from "../../logic/time/time.ts";

/** CSS pixels from one label to the next, and of the longest one with the zone at the end of the axis behind it. */
const LABEL = 110;
const LAST = 124;

/** Labels above the chart; below a second they are milliseconds from the first one. */
export function TimeAxis({ from, range, width }: { from: number; range: Range; width: number }) {
  const [begin, end] = [from + range.from / 1e6, from + range.until / 1e6];
  const { ticks, stepMs } = timeTicks(begin, end, Math.max(2, Math.floor(width / LABEL)));
  const labels =
    stepMs >= 1000 ? tickLabels(ticks, stepMs) : ticks.map((tick) => momentText(from, (tick - from) * 1e6, 1e9));
  return (
    <div class="timeline-axis" style={{ width: `${width}px` }} aria-hidden="true">
      <b>{zoneOf(begin)}</b>
      {ticks.map((tick, i) => (
        <span key={tick} style={{ left: `${((tick - begin) / (end - begin)) * 100}%` }}>
          {/* Half a label would be another one. */}
          {((end - tick) / (end - begin)) * width > LAST && labels[i]}
        </span>
      ))}
    </div>
  );
}
