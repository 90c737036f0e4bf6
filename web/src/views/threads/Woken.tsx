/**
 * Who ended waits, as a graph that stands above the waits' own, on its head: both meet at their roots, which are as
 * wide as each other. What is zoomed below is what the upper one is of. It has a zoom of its own; the search is one.
 */
import { useMemo, useState } from "preact/hooks";
import { matchesOf, namesOf, search } from "../../logic/flame/search.ts";
import { frameText, measureOf } from "../../logic/graph/measure.ts";
import { percent } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { unitOf } from "../../logic/text/unit.ts";
import { findSelection, focusOf, selectionOf } from "../../logic/tree/focus.ts";
import { isNoFunction } from "../../logic/tree/rows.ts";
import { frameName, kindName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { knownText, WHY_UNKNOWN, wakerWords } from "../../logic/waits/wokenGraph.ts";
import { navigate } from "../../state/address/page.ts";
import { type WokenBy, wakerFocus, wokenBy } from "../../state/moments/wokenBy.ts";
import { matching } from "../../state/screen/search.ts";
import { Flamegraph, type FlamegraphProps } from "../flame/Flamegraph.tsx";
import type { FrameAction } from "../flame/FrameMenu.tsx";
import type { TooltipProps } from "../flame/Tooltip.tsx";
import { findName } from "../frame/steps.ts";
import { Tooltip } from "../lazyViews.tsx";
import { Busy, EmptyNotice, ErrorNotice } from "../ui/Notices.tsx";

const NAME_ROOM = 60;

export function Woken(graph: FlamegraphProps) {
  const [answer, error] = [wokenBy.data.value, wokenBy.error.value];
  return (
    <div class="woken">
      <section
        class="woken-graph"
        aria-label="Who ended these waits"
        aria-busy={wokenBy.stale.value}
        data-testid="woken"
      >
        <Busy on={wokenBy.loading.value} />
        {error !== null && <ErrorNotice error={error} />}
        {answer !== null && <Wakers answer={answer} below={graph} />}
        {answer === null && error === null && <p class="woken-title dim">Asking who ended these waits …</p>}
      </section>
      <div class="woken-waits" data-testid="waiting">
        <Flamegraph {...graph} />
      </div>
    </div>
  );
}

interface WakersProps {
  answer: WokenBy;
  /** The waits' own graph. */
  below: FlamegraphProps;
}

const within = ({ subject }: WokenBy) => (subject.name === "" ? "" : ` in ${fitName(subject.name, NAME_ROOM)}`);

function Wakers({ answer, below }: WakersProps) {
  const { tree, fault, samples, wakers = { known: samples, unknown: 0 } } = answer.graph;
  if (tree === null) return <EmptyNotice title={`The answer is broken: ${fault}.`} />;
  if (samples === 0) return <EmptyNotice title={`Nothing waited${within(answer)} in this window.`} />;
  if (wakers.known === 0)
    return (
      <EmptyNotice title={`Nobody is known to have ended the waits${within(answer)}.`}>
        <p>{WHY_UNKNOWN}</p>
      </EmptyNotice>
    );
  return <WakersGraph tree={tree} answer={answer} below={below} known={wakers} />;
}

interface GraphProps extends WakersProps {
  tree: Tree;
  known: { known: number; unknown: number };
}

function findSelected(tree: Tree, chosen: { tree: Tree; node: number }) {
  const node = findSelection(tree, selectionOf(chosen.tree, chosen.node));
  return node === null ? null : { tree, node };
}

function WakersGraph({ tree, answer, below, known }: GraphProps) {
  const { subject, graph } = answer;
  const focus = wakerFocus.value;
  const [chosen, setChosen] = useState<{ tree: Tree; node: number } | null>(null);
  const [shown, setShown] = useState<{ of: string; part: string } | null>(null);
  const [isWhy, setWhy] = useState(false);
  // A newer answer numbers frames in another way: a frame is told by its path, and a part by whose width it is of.
  const selected = useMemo(
    () => (chosen === null || chosen.tree === tree ? chosen : findSelected(tree, chosen))?.node ?? null,
    [chosen, tree],
  );
  const wide = `${wokenBy.subject.value} ${useMemo(() => focusOf(tree, focus), [tree, focus])}`;
  const part = shown?.of === wide ? shown.part : "";
  const wanted = matching.value;
  const found = useMemo(
    () => (wanted === null || "error" in wanted ? null : search(tree, matchesOf(tree, namesOf(tree), wanted), focus)),
    [tree, wanted, focus],
  );
  const measure = {
    ...below.measure,
    ...measureOf(`who ended the waits${within(answer)}`, graph),
    samples: graph.samples,
    unit: unitOf(graph),
  };
  const select = (node: number | null) => setChosen(node === null ? null : { tree, node });
  const zoom = (node: number) => {
    select(node);
    navigate({ waker: focusOf(tree, node) });
  };
  const actionsOf = (node: number | null): FrameAction[] => {
    if (node === null || node === ROOT) return [];
    const name = frameName(tree, node);
    const isFunction = !isNoFunction(kindName(tree, node));
    return [
      { key: "Enter", label: "Zoom", hint: "This frame and what it calls fill the width", run: () => zoom(node) },
      ...(isFunction
        ? [{ key: "f", label: "Find this function", hint: "Search for exactly this name", run: () => findName(name) }]
        : []),
    ];
  };
  const reset = () => {
    select(null);
    setShown(null);
    navigate({ waker: "" });
  };
  return (
    <>
      <p class="woken-title">
        <b>Woken by</b>
        <span data-testid="woken-known">
          {subject.name !== "" && (
            <>
              <bdi>{fitName(subject.name, NAME_ROOM)}</bdi>
              {subject.isWider && " and its like elsewhere"}:{" "}
            </>
          )}
          {knownText(known, measure.secondsPerSample)}
        </span>
        {known.unknown > 0 && (
          <button
            type="button"
            class="button tiny"
            aria-label="Why nobody is known"
            aria-expanded={isWhy}
            onClick={() => setWhy(!isWhy)}
          >
            Why
          </button>
        )}
        {found !== null && (
          <span class="dim" data-testid="woken-found">
            found in {percent(found.afterShare)}
          </span>
        )}
        {focus !== ROOT && (
          <button type="button" class="button tiny" data-testid="reset-waker" onClick={reset}>
            Show all wakers
          </button>
        )}
        <span class="dim woken-said" role="status" aria-live="polite" data-testid="selected-waker" dir="auto">
          {selected !== null && `${frameText(tree, selected, focus, measure)}: ${wakerWords(tree, selected)}`}
        </span>
        <button
          type="button"
          class="button icon"
          aria-label="Hide who ended these waits"
          onClick={() => navigate({ woken: false, waker: "" })}
        >
          ✕
        </button>
      </p>
      {isWhy && known.unknown > 0 && <p class="woken-why dim">{WHY_UNKNOWN}</p>}
      <Flamegraph
        tree={tree}
        subject={wokenBy.subject.value}
        focus={focus}
        search={found}
        selected={selected}
        pointed={below.pointed}
        theme={below.theme}
        colourBy={below.colourBy}
        flame={!below.flame}
        measure={measure}
        part={part}
        actionsOf={actionsOf}
        onZoom={zoom}
        onSelect={select}
        onPart={(text) => setShown({ of: wide, part: text })}
        onceRested={below.onceRested}
        onReset={reset}
        onPoint={below.onPoint}
        tip={WakerTip}
        frameMenu={below.frameMenu}
      />
    </>
  );
}

function WakerTip(props: TooltipProps) {
  return <Tooltip {...props} about={wakerWords(props.tree, props.node)} />;
}
