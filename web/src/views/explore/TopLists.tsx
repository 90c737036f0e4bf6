/** What takes most, by node, service, container, process and thread, each with its course over the window. */
import { useMemo } from "preact/hooks";
import type { SeriesAnswer, SeriesLine } from "../../api/types.ts";
import { sparkPath } from "../../logic/series/spark.ts";
import { stackOf } from "../../logic/series/stack.ts";
import { count, duration, percent } from "../../logic/text/format.ts";
import { rateHead, rateShort, rateText } from "../../logic/text/unit.ts";
import { navigate, page } from "../../state/address/page.ts";
import { flamegraph } from "../../state/answers/explore.ts";
import { LISTED, type Listed, lists } from "../../state/answers/lists.ts";
import { charted } from "../../state/screen/units.ts";
import { layerName } from "../chart/LayerList.tsx";
import { actionOf, actOnValue, onAltEnter, VALUE_HINT } from "../chart/valueActions.ts";

const WIDTH = 64;
const HEIGHT = 15;

export function TopLists() {
  return (
    <div class="toplists" data-testid="toplists">
      {LISTED.map((label) => (
        <TopList key={label} label={label} />
      ))}
    </div>
  );
}

function TopList({ label }: { label: Listed }) {
  const { data, error, loading } = lists[label];
  const answer = data.value;
  if (answer === null) {
    if (error.value === null && !loading.value) return null;
    // What the profile below says need not be said five times more.
    if (error.value !== null && flamegraph.error.value?.code === error.value.code) return null;
    return <section class="card toplist dim">{error.value?.message ?? `${label} …`}</section>;
  }
  // Where nothing has the label, there is nothing to choose from.
  if (answer.series.every((line) => line.value === "")) return null;
  return <FilledList label={label} answer={answer} />;
}

function FilledList({ label, answer }: { label: Listed; answer: SeriesAnswer }) {
  const stack = useMemo(() => stackOf(answer), [answer]);
  const others = answer.other?.series ?? 0;
  return (
    <section class="card toplist" aria-label={`Largest by ${label}`}>
      <div class="toplist-title">
        <h2>{label}</h2>
        <button
          type="button"
          class="button tiny"
          onClick={() => navigate({ rank: label, pane: page.value.pane === "graph" ? "both" : page.value.pane })}
        >
          {others > 0 ? `all ${count(answer.series.length + others)}` : "table"}
          <span class="visually-hidden"> by {label}, in the table</span>
        </button>
      </div>
      <ul>
        {answer.series.map((line, i) => (
          <Row
            key={line.value}
            label={label}
            line={line}
            mean={stack.layers[i]?.mean ?? 0}
            share={stack.layers[i]?.share ?? 0}
          />
        ))}
      </ul>
    </section>
  );
}

function Row({ label, line, mean, share }: { label: Listed; line: SeriesLine; mean: number; share: number }) {
  const name = layerName(line.value, 0, label);
  const unit = charted.value;
  const time = line.cpu_seconds === null ? "" : `${duration(line.cpu_seconds)} of CPU time, `;
  const path = useMemo(() => sparkPath(line.cores, WIDTH, HEIGHT), [line]);
  return (
    <li>
      <button
        type="button"
        title={`${line.value || name}: ${rateText(mean, unit)}, ${time}${percent(share)}. ${VALUE_HINT}`}
        onClick={(event) => actOnValue(label, line.value, actionOf(event))}
        onKeyDown={(event) => onAltEnter(event, (as) => actOnValue(label, line.value, as))}
      >
        <span class="toplist-name">
          <span class="visually-hidden">{label} </span>
          {name}
        </span>
        <svg class="spark" width={WIDTH} height={HEIGHT + 2} viewBox={`0 -1 ${WIDTH} ${HEIGHT + 2}`} aria-hidden="true">
          <path d={path} />
        </svg>
        <span class="toplist-cores">
          {rateShort(mean, unit)}
          <span class="visually-hidden"> {rateHead(unit)}: show only this</span>
        </span>
      </button>
    </li>
  );
}
