/** How much a window's numbers can be trusted: one line under the chart. */
import type { ComponentChildren } from "preact";
import type { Exposure, Period, Quality as QualityFigures } from "../../api/types.ts";
import { agentsOf, howMany } from "../../logic/agents/agents.ts";
import { gapsOf, idleText, lossOf, unseenOf, waitsPart, waitsText } from "../../logic/agents/loss.ts";
import { ratesOf } from "../../logic/agents/rates.ts";
import { count, duration, percent, plural, shareOf } from "../../logic/text/format.ts";
import {
  amountHead,
  amountShort,
  amountText,
  rateHead,
  rateShort,
  rateText,
  timeHead,
  timeText,
  type Unit,
} from "../../logic/text/unit.ts";
import type { Window } from "../../logic/time/time.ts";
import { linkTo } from "../../state/address/page.ts";
import { nodes } from "../../state/answers/agents.ts";

/** What an answer about a window says of itself. */
interface Watched extends Window {
  samples: number;
  cores: number | null;
  /** Of a type that is no time: its unit per second. */
  rate?: number | null;
  /** Null where the type is no time. */
  cpu_seconds: number | null;
  periods: Period[];
  exposure: Exposure;
  quality: QualityFigures;
}

interface Props {
  /** The side's letter; empty of one window. */
  name: string;
  answer: Watched;
  unit: Unit;
}

export function Quality({ name, answer, unit }: Props) {
  const { samples, exposure, quality, periods, cpu_seconds: cpuSeconds } = answer;
  const rate = answer.cores ?? answer.rate ?? 0;
  const lost = lossOf(quality.lost);
  const gap = gapsOf(exposure, answer);
  const gapMs = gap.all;
  const unseen = unseenOf(exposure);
  const waits = waitsPart(exposure);
  const idle = idleText(exposure);
  const truncated = shareOf(quality.truncated_samples, samples);
  const unnamed = shareOf(quality.unnamed_samples, samples);
  // A wait's value is its length: it says nothing of a rate.
  const rates = unit.isWait ? null : ratesOf(periods);
  const observed = duration(exposure.observed_cpu_seconds);
  const nodes = plural(exposure.nodes, "node");
  const gaps = plural(exposure.gaps.length, "gap");
  return (
    <div class={`quality side-${name}`}>
      {name !== "" && <span class="quality-name">{name}</span>}
      <dl>
        {unit.name !== "nanoseconds" && (
          <Figure name={amountHead(unit)} value={amountShort(samples, unit)} hint={amountText(samples, unit)} />
        )}
        <Figure
          name={rateHead(unit)}
          value={rateShort(rate, unit)}
          hint={cpuSeconds === null ? rateText(rate, unit) : timeText(cpuSeconds, unit)}
        />
        {cpuSeconds !== null && (
          <Figure name={timeHead(unit)} value={duration(cpuSeconds)} hint="Samples times what each stands for" />
        )}
        {rates !== null && <Figure name="rate" value={rates.brief} hint={rates.text} />}
        {idle !== "" && (
          <Figure
            name="idle"
            value={idle}
            hint={`of ${observed} of observed CPU time on ${nodes}; no timer ticks: what no sample tells of`}
          />
        )}
        <Figure
          name="truncated stacks"
          value={percent(truncated)}
          hint={
            `${plural(quality.truncated_samples, "sample")} that lack their root or a part before it, ` +
            "where [cut] or [… frames] stands; the table by process shows whose they are"
          }
        />
        <Figure
          name="unsymbolized"
          value={percent(unnamed)}
          hint={`${plural(quality.unnamed_samples, "sample")} with a frame whose function is not known`}
        />
        <Figure
          name="lost"
          value={lost.samples === 0 ? "none" : lost.brief}
          hint={lost.text || "No agent lost a sample in this window"}
          warn={lost.samples > 0}
        />
        <Figure
          name="coverage gap"
          value={gapMs > 0 ? duration(gapMs / 1000) : unseen > 0 ? `${percent(unseen)} of nodes` : "none"}
          hint={[
            gapMs === 0 ? "Agents watched all the time" : `${gaps} without any agent; rates leave them out`,
            gapMs > 0 && gap.inside === 0 ? ": before the first agent's samples, or behind the newest" : "",
            unseen > 0
              ? `, of ${nodes} ${percent(1 - unseen)} in the mean: a node counts with what was seen of it`
              : "",
          ].join("")}
          warn={gap.inside > 0 || unseen > 0}
        />
        {waits !== null && (
          <Figure
            name="waits observed"
            value={`${percent(waits)} of the time`}
            hint={`${waitsText(exposure)}: where threads switch very often, an agent looks at their waits in turns`}
            warn={true}
          />
        )}
        {name !== "A" && <Silent />}
      </dl>
    </div>
  );
}

/** Agents of which nothing comes any more, at present. */
function Silent() {
  const rows = nodes.data.value?.nodes;
  if (rows === undefined) return null;
  const agents = agentsOf(rows);
  const silent = howMany(agents, "silent");
  const of = silent + howMany(agents, "live");
  return (
    <Figure
      name="agents not reporting"
      value={silent === 0 ? "none" : <a href={linkTo({ view: "nodes" })}>{`${count(silent)} of ${count(of)}`}</a>}
      hint={
        silent === 0
          ? `${plural(of, "agent")} at work`
          : `${plural(silent, "agent")} late at present: what ran there since is missing`
      }
      warn={silent > 0}
    />
  );
}

function Figure({
  name,
  value,
  hint,
  warn = false,
}: {
  name: string;
  value: ComponentChildren;
  hint: string;
  warn?: boolean;
}) {
  return (
    <div class={warn ? "figure warn" : "figure"} title={hint}>
      <dt>{name}</dt>
      <dd>
        {warn && <span aria-hidden="true">! </span>}
        {value}
        <span class="visually-hidden"> ({hint})</span>
      </dd>
    </div>
  );
}
