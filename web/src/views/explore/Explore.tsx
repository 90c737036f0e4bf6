/** One selection, one window: where the time went. */
import { useEffect } from "preact/hooks";
import { measureOf } from "../../logic/graph/measure.ts";
import { isWait } from "../../logic/text/unit.ts";
import { lengthOf } from "../../logic/time/windows.ts";
import { isOpen, navigate, page } from "../../state/address/page.ts";
import { byLabels } from "../../state/answers/compare.ts";
import { exploreSeries, flamegraph, ranking } from "../../state/answers/explore.ts";
import { exploreStack, lists } from "../../state/answers/lists.ts";
import { labels } from "../../state/answers/server.ts";
import { awaiting } from "../../state/live.ts";
import { range } from "../../state/question/question.ts";
import { theme } from "../../state/screen/theme.ts";
import { focus, tree } from "../../state/screen/tree.ts";
import { counted } from "../../state/screen/units.ts";
import { Brush } from "../chart/Brush.tsx";
import { ChartCard } from "../chart/ChartCard.tsx";
import { showValueMenu } from "../chart/ValueButtons.tsx";
import { actionOf, actOnValue } from "../chart/valueActions.ts";
import { Download } from "../graph/Download.tsx";
import { FunctionTable } from "../graph/FunctionTable.tsx";
import { findName, Graph } from "../graph/Graph.tsx";
import type { Tab } from "../graph/Pane.tsx";
import { Unloaded } from "../lazyView.tsx";
import {
  ChangeButtons,
  ChangedMost,
  InstallLine,
  Quality,
  RankTable,
  SpentBy,
  TopLists,
  WaitChips,
  WokenTool,
  wokenFile,
} from "../lazyViews.tsx";
import { Check } from "../ui/Check.tsx";
import { Choice } from "../ui/Choice.tsx";
import { EmptyNotice, ErrorNotice, Missing, UnreadableSelector } from "../ui/Notices.tsx";
import { compareWithBefore } from "./startCompare.ts";

export function Explore() {
  return (
    <>
      <ExploreChart />
      {isWait(page.value.type) && <WaitChips />}
      <ExploreProfile />
    </>
  );
}

function ExploreChart() {
  return (
    <ChartCard
      series={exploreSeries}
      stack={exploreStack}
      saidBelow={flamegraph.error.value}
      label={`${isWait(page.value.type) ? "Threads waiting" : "Cores"} over time. Drag to choose a window.`}
      onRange={(w) => navigate({ from: String(w.from), until: String(w.until), live: false }, "wheel")}
      tools={
        <>
          {page.value.by !== "mode" && !isWait(page.value.type) && (
            <Check
              checked={page.value.apart}
              onToggle={() => navigate({ apart: !page.value.apart })}
              title="Time in the kernel apart, in a darker shade of the same colour"
              id="apart"
            >
              Split user/system
            </Check>
          )}
          <button
            type="button"
            class="button"
            title="Compare this window with the equal one before it"
            onClick={compareWithBefore}
          >
            Compare with previous window
          </button>
          <ChangeButtons of="all" />
        </>
      }
      suggestion={<ChangeButtons of="largest" />}
      overlay={(plot, { hover, onHover, layer, caption, spoken, zoom }) => (
        <Brush
          plot={plot}
          hover={hover}
          onHover={onHover}
          caption={caption}
          spoken={spoken}
          onZoom={zoom}
          onTake={(event) => {
            if (layer !== null) actOnValue(layer.by, layer.value, actionOf(event), layer.mode);
          }}
          onMenu={(event) => {
            if (layer === null) return;
            event.preventDefault();
            showValueMenu(layer.by, layer.value, event.currentTarget as HTMLElement, event.clientX, layer.mode);
          }}
          onPick={(w) => navigate({ from: String(w.from), until: String(w.until), live: false })}
        />
      )}
    />
  );
}

/** The profile of one window: what the page's state says it is. */
export function ExploreProfile() {
  const answer = flamegraph.data.value;
  const error = flamegraph.error.value;
  const loading = flamegraph.loading.value;
  const { rank, view, type, woken, lists: hasLists } = page.value;
  const isWoken = woken && type === "off_cpu";
  // While the server is asked: its answer is then shown as soon as it comes.
  useEffect(() => {
    if (rank !== "function") RankTable.preload();
    if (isWoken) wokenFile.load();
  }, [rank, isWoken]);
  if (answer === null) {
    if (error?.code === "bad_query")
      return <UnreadableSelector error={error} onClear={() => navigate({ query: "" })} />;
    return <Missing error={error} loading={loading} kind="graph" />;
  }
  // What could not be asked again may have samples meanwhile.
  if (answer.samples === 0) {
    // That nothing was found is said of what was asked alone.
    if (flamegraph.stale.value) return <Missing error={null} loading={true} kind="graph" />;
    return error === null ? <NoSamples /> : <ErrorNotice error={error} />;
  }
  const shown = tree.value.tree;
  const measure = measureOf(page.value.query || "all samples", answer);
  const tabs: Tab[] = [
    {
      id: "functions",
      isStale: () => (rank === "function" ? flamegraph : ranking).stale.value,
      title: rank === "function" ? "Functions" : `By ${rank}`,
      content: () =>
        shown !== null &&
        (rank === "function" ? (
          <FunctionTable
            tree={shown}
            focus={focus.value.node}
            theme={theme.value}
            choice={<RankChoice />}
            onFind={findName}
          />
        ) : (
          <RankTable answer={ranking.data.value} choice={<RankChoice />} />
        )),
    },
    {
      id: "spent",
      title: "Spent by",
      hint: "Whose time it is",
      content: () => <SpentBy />,
      isStale: () => false,
    },
    ...(view === "explore"
      ? [
          {
            id: "changed",
            title: "Changed most",
            hint: "Since an earlier window",
            content: () => <ChangedMost choice={<RankChoice />} />,
            isStale: () => {
              const changed = byLabels.value?.changedMost;
              return changed?.stale.value === true && changed.data.value?.by === rank;
            },
          },
        ]
      : []),
    ...(view === "explore" && hasLists
      ? [
          {
            id: "lists",
            title: "Top lists",
            hint: "Who takes most",
            content: () => <TopLists />,
            isStale: () => lists.stale.value,
          },
        ]
      : []),
  ];
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      {isWoken && wokenFile.failed.value && <Unloaded onRetry={wokenFile.load} />}
      {isOpen("data") && (
        <div class="card data" aria-busy={flamegraph.stale.value}>
          <Quality name="" answer={answer} unit={counted.value} />
        </div>
      )}
      <Graph
        measure={measure}
        loading={loading}
        download={
          <Download
            path="/flamegraph"
            parameters={{ type: answer.type, query: page.value.query, from: answer.from, until: answer.until }}
            by={rank}
          />
        }
        tabs={tabs}
        tools={isWait(type) && <WokenTool />}
        picture={(isWoken && wokenFile.content.value) || undefined}
      />
    </>
  );
}

function RankChoice() {
  const known = labels.data.value?.labels ?? [];
  return (
    <Choice
      label=""
      name="Rank by"
      id="rank"
      value={page.value.rank}
      options={["function", ...known].map((label) => [label, label] as const)}
      onChoose={(chosen) => navigate({ rank: chosen })}
    />
  );
}

function NoSamples() {
  const { query, type, least, most } = page.value;
  const length = lengthOf(range.value);
  const isBounded = isWait(type) && (least !== "" || most !== "");
  return (
    <EmptyNotice title="No samples in this window.">
      {isBounded && (
        <p>
          Waits of other lengths are left out.{" "}
          <button type="button" class="button" onClick={() => navigate({ least: "", most: "" })}>
            Count waits of any length
          </button>
        </p>
      )}
      {query !== "" && (
        <p>
          Nothing matches <code>{query}</code> here.{" "}
          <button type="button" class="button" onClick={() => navigate({ query: "" })}>
            Show everything
          </button>
        </p>
      )}
      {length < 86_400_000 && (
        <p>
          Perhaps it ran at another time.{" "}
          <button type="button" class="button" onClick={() => navigate({ from: "now-24h", until: "now" })}>
            Look at 24 hours
          </button>
        </p>
      )}
      {awaiting.value && <p class="dim">Looking again every few seconds.</p>}
      {query === "" && !isBounded && <InstallLine />}
    </EmptyNotice>
  );
}
