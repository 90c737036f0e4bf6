/** What takes most, by node, service, container, process and thread, each with its course over the window. */
import { useMemo } from "preact/hooks";
import type { SeriesAnswer, SeriesLine } from "../../api/types.ts";
import { sparkPath } from "../../logic/series/spark.ts";
import { stackOf } from "../../logic/series/stack.ts";
import { count, percent } from "../../logic/text/format.ts";
import { rateHead, rateText, timeText } from "../../logic/text/unit.ts";
import { navigate } from "../../state/address/page.ts";
import { flamegraph } from "../../state/answers/explore.ts";
import { LISTED, type Listed, lists } from "../../state/answers/lists.ts";
import { charted, layerFigure } from "../../state/screen/units.ts";
import { layerName } from "../chart/LayerList.tsx";
import { ValueDots, valueHandlers } from "../chart/ValueButtons.tsx";
import { VALUE_HINT } from "../chart/valueActions.ts";
import { useKeptFocus } from "../ui/hooks.ts";

const WIDTH = 64;
const HEIGHT = 15;

export function TopLists() {
  const { data, error, loading } = lists;
  if (data.value === null) {
    if (error.value === null && !loading.value) return null;
    // What the profile says need not be said again.
    if (error.value !== null && flamegraph.error.value?.code === error.value.code) return null;
    return <p class="pane-hint dim">{error.value?.message ?? "…"}</p>;
  }
  return (
    <div class="toplists" data-testid="toplists">
      {LISTED.map((label) => (
        <TopList key={label} label={label} />
      ))}
    </div>
  );
}

function TopList({ label }: { label: Listed }) {
  const answer = lists.data.value?.[label]?.series;
  if (answer === undefined) return null;
  // Where nothing has the label, there is nothing to choose from.
  if (answer.series.every((line) => line.value === "")) return null;
  return <FilledList label={label} answer={answer} />;
}

function FilledList({ label, answer }: { label: Listed; answer: SeriesAnswer }) {
  const stack = useMemo(() => stackOf(answer), [answer]);
  const others = answer.other?.series ?? 0;
  useKeptFocus();
  return (
    <section class="card toplist" aria-label={`Largest by ${label}`}>
      <div class="toplist-title">
        <h2>{label}</h2>
        <button type="button" class="button tiny" onClick={() => navigate({ rank: label, tab: "functions" })}>
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
  const time = line.cpu_seconds === null ? "" : `${timeText(line.cpu_seconds, unit)}, `;
  const path = useMemo(() => sparkPath(line.cores, WIDTH, HEIGHT), [line]);
  return (
    <li>
      <button
        type="button"
        class="toplist-row"
        title={`${line.value || name}: ${rateText(mean, unit)}, ${time}${percent(share)}. ${VALUE_HINT}`}
        {...valueHandlers(label, line.value)}
      >
        <span class="toplist-name">
          <span class="visually-hidden">{label} </span>
          {name}
        </span>
        <svg class="spark" width={WIDTH} height={HEIGHT + 2} viewBox={`0 -1 ${WIDTH} ${HEIGHT + 2}`} aria-hidden="true">
          <path d={path} />
        </svg>
        <span class="toplist-cores">
          {layerFigure({ mean, amount: line.total ?? (line.cpu_seconds ?? 0) * 1e9, samples: line.samples })}
          <span class="visually-hidden"> {rateHead(unit)}: show only this</span>
        </span>
      </button>
      <ValueDots label={label} value={line.value} name={name} />
    </li>
  );
}
