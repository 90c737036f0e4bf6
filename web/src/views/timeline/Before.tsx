/** What ran shortly before a frame that is looked for in a timeline. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { patternName } from "../../logic/flame/search.ts";
import { hitsOf, ranBefore, usualPeriodMs } from "../../logic/flame/timeline.ts";
import { measureOf } from "../../logic/graph/measure.ts";
import { laneOf, parseSelector } from "../../logic/labels/selector.ts";
import { axisNumber, count, duration, plural } from "../../logic/text/format.ts";
import { navigate, page } from "../../state/address/page.ts";
import { chart } from "../../state/answers/lane.ts";
import { beforeAsked, beforeHits, isBeforeShown, laneQuery, sought } from "../../state/answers/timeline.ts";
import { theme } from "../../state/screen/theme.ts";
import { focus, tree } from "../../state/screen/tree.ts";
import { Download } from "../graph/Download.tsx";
import { FunctionTable } from "../graph/FunctionTable.tsx";
import { findName, Graph } from "../graph/Graph.tsx";
import { Choice } from "../ui/Choice.tsx";
import { EmptyNotice, ErrorNotice, Missing } from "../ui/Notices.tsx";
import { choose } from "./Lanes.tsx";

/** Of a period: two samples of a CPU are hardly ever nearer to each other. */
const NEAREST = 0.7;
const BEFORE_MS = ["1", "5", "10", "50", "100", "500", "1000"] as const;

/** Why a length can show nothing: no sample lies as near to another one. */
function tooNear(ms: string, apart: number | null): string {
  return apart !== null && Number(ms) < apart * NEAREST ? `samples are ${beforeText(String(apart))} apart` : "";
}

function beforeText(ms: string): string {
  return Number(ms) >= 1000 ? `${axisNumber(Number(ms) / 1000)} s` : `${ms} ms`;
}

/** What is looked for, and how long before it is of interest. */
export function HitBox() {
  const { hit, before } = page.value;
  const apart = usePeriodMs();
  const wanted = sought.value;
  const fault = wanted !== null && "error" in wanted ? wanted.error : "";
  return (
    <>
      <span class="inline">
        <Choice
          label="Preceding samples"
          name="Preceding samples, how long before"
          id="before"
          value={before}
          options={[
            ["", "…"],
            ...[...new Set([before, ...BEFORE_MS])]
              .filter((ms) => ms !== "")
              .sort((a, b) => Number(a) - Number(b))
              .map((ms) => [ms, beforeText(ms), tooNear(ms, apart)] as const),
          ]}
          onChoose={(ms) => navigate({ before: ms, focus: "" })}
        />
        before
      </span>
      <div class={`search${fault === "" ? "" : " bad"}`}>
        <input
          type="search"
          placeholder="a function or /regex/"
          aria-label="Find in the timeline"
          aria-invalid={fault !== ""}
          spellcheck={false}
          value={hit}
          data-testid="hit"
          onInput={(event) => navigate({ hit: event.currentTarget.value, focus: "" }, "hit")}
        />
        {fault !== "" && (
          <span class="search-fault" role="alert">
            {fault}
          </span>
        )}
      </div>
    </>
  );
}

export function Before() {
  const { before, hit } = page.value;
  const ran = useRanBefore();
  const apart = usePeriodMs();
  const answer = beforeHits.data.value;
  const error = beforeHits.error.value;
  const loading = beforeHits.loading.value;
  if (!isBeforeShown.value) return null;
  const named = patternName(hit);
  const where = `in the ${beforeText(before)} before ${named === hit ? hit : `functions named ${named}`}`;

  if (answer === null) return <Missing error={error} loading={loading} kind="graph" />;
  if (answer.samples === 0) {
    if (beforeHits.stale.value) return <Missing error={null} loading={true} kind="graph" />;
    return (
      <EmptyNotice title={`No sample ${where}.`}>
        <p>
          {apart !== null && Number(before) < apart
            ? `Samples are ${duration(apart / 1000)} apart here, so that none lies as near: look further back.`
            : "No sample of the selection has such a function (the box takes no names of programs), or the CPU was idle " +
              "before: look for another function, or further back."}
        </p>
      </EmptyNotice>
    );
  }
  const shown = tree.value.tree;
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <BeforeTitle>
        <b>{plural(answer.samples, "sample")}</b> {where}, on the same CPU; each counts once.
        {ran.length > 0 && (
          <span class="offers-row" data-testid="before-threads">
            Of other threads, most were of
            {ran.slice(0, MOST_THREADS).map(({ tid, service, thread, samples }) => (
              <button
                key={tid}
                type="button"
                class="button tiny"
                title={`Show only ${thread} (${tid})`}
                onClick={() => choose("tid", tid)}
              >
                {service === thread ? thread : `${service} · ${thread}`} <span class="dim">{count(samples)}</span>
              </button>
            ))}
          </span>
        )}
      </BeforeTitle>
      <Graph
        measure={measureOf(`samples ${where}`, answer)}
        loading={loading}
        download={<Download path="/timeline" parameters={beforeAsked.value ?? {}} by="" />}
        tabs={[
          {
            id: "functions",
            title: "Functions",
            content: () =>
              shown !== null && (
                <FunctionTable
                  tree={shown}
                  focus={focus.value.node}
                  theme={theme.value}
                  choice={null}
                  onFind={findName}
                />
              ),
          },
        ]}
      />
    </>
  );
}

const MOST_THREADS = 6;

/** Threads of the CPU that is shown, by what they ran shortly before; none where no CPU is shown. */
function useRanBefore(): ReturnType<typeof ranBefore> {
  const { before } = page.value;
  const query = laneQuery.value;
  const { chart: drawn } = chart.value;
  const wanted = sought.value;
  const isCpu = laneOf(parseSelector(query)).cpu !== "";
  return useMemo(() => {
    if (drawn === null || !isCpu || wanted === null || "error" in wanted) return [];
    return ranBefore(drawn, hitsOf(drawn, wanted).samples, Number(before) * 1e6);
  }, [drawn, isCpu, wanted, before]);
}

/** Milliseconds from one sample of the CPU or thread that is shown to the next, usually; null where none is. */
function usePeriodMs(): number | null {
  const { chart: drawn } = chart.value;
  return useMemo(() => (drawn === null ? null : usualPeriodMs(drawn)), [drawn]);
}

function BeforeTitle({ children }: { children: ComponentChildren }) {
  return (
    <div class="before-title" role="status" data-testid="before-title" aria-busy={beforeHits.stale.value}>
      {children}
    </div>
  );
}
