/** Changes of the level, as buttons over the chart: they come once the chart is there. */
import { useMemo } from "preact/hooks";
import { type ChangePoint, changePoints, changeText, largestChange } from "../../logic/series/changePoints.ts";
import { duration, plural } from "../../logic/text/format.ts";
import { clock } from "../../logic/time/time.ts";
import { lengthOf } from "../../logic/time/windows.ts";
import { navigate } from "../../state/address/page.ts";
import { exploreSeries } from "../../state/answers/explore.ts";
import { exploreStack } from "../../state/answers/lists.ts";
import { level, levelIn, levelTitle } from "../../state/screen/units.ts";
import { Menu } from "../ui/Menu.tsx";
import { compare } from "./startCompare.ts";

/**
 * Where the cores changed: one click compares what was before with what came; across a start there is nothing to
 * compare. `of`: the largest change alone, or the menu of all.
 */
export function ChangeButtons({ of }: { of: "largest" | "all" }) {
  const stack = exploreStack.value;
  const series = exploreSeries.data.value;
  const points = useMemo(() => (stack === null ? [] : changePoints(stack)), [stack]);
  if (series === null || points.length === 0) return null;
  const across = largestChange(points);
  const whole = { from: series.from, until: series.until };
  const take = ({ pair, kind, at }: ChangePoint) => {
    if (pair !== null) compare(pair.comparison, pair.base, whole);
    else if (kind === "started") navigate({ from: String(at), until: String(whole.until), live: false });
    else if (kind === "ended") navigate({ from: String(whole.from), until: String(at), live: false });
  };
  return (
    <>
      {of === "largest" && across !== null && (
        <button
          type="button"
          class="button"
          data-testid="largest-change"
          title={`From ${level(across.before)} to ${levelIn(across.after)}: compare before and after, equally long`}
          onClick={() => take(across)}
        >
          Compare before/after {clock(across.at)}
        </button>
      )}
      {of === "all" && (points.length > 1 || across === null) && (
        <Menu label={`${plural(points.length, "change point")} ▾`} name="Change points">
          {(close) => (
            <ul class="menu-list" data-testid="change-points">
              {points.map((point) => (
                <li key={`${point.kind} ${point.at}`}>
                  <button
                    type="button"
                    disabled={point.kind === "changed" && point.pair === null}
                    onClick={() => {
                      close();
                      take(point);
                    }}
                  >
                    <b>{changeText(point, level, levelTitle())}</b>
                    <small>{takeText(point)}</small>
                  </button>
                </li>
              ))}
            </ul>
          )}
        </Menu>
      )}
    </>
  );
}

function takeText({ pair, kind }: ChangePoint): string {
  if (pair !== null) return `compare ${duration(lengthOf(pair.base) / 1000)} before with as long after`;
  if (kind === "started") return "nothing before it to compare with: look at what ran since";
  if (kind === "ended") return "nothing behind it to compare with: look at what ran until then";
  return "too little is covered beside it to compare";
}
