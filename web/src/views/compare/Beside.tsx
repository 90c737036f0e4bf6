/**
 * Both sides of a comparison as graphs of their own, A beside B: the same frames at the same widths, with one zoom, one
 * selection and one search. What a width stands for is the same on both.
 */
import { useMemo } from "preact/hooks";
import { besideLevels } from "../../logic/compare/besideLevels.ts";
import { normText, normWords, worthOf } from "../../logic/compare/norm.ts";
import { frameText } from "../../logic/graph/measure.ts";
import { figureWords } from "../../logic/text/figure.ts";
import { percent } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import { rateHead, rateText } from "../../logic/text/unit.ts";
import { titleOf } from "../../logic/tree/rows.ts";
import { ROOT, withWidth } from "../../logic/tree/tree.ts";
import { pointedFrame } from "../../state/screen/selection.ts";
import { sent } from "../../state/screen/tree.ts";
import { Flamegraph, type FlamegraphProps } from "../flame/Flamegraph.tsx";

const LETTERS = ["A", "B"] as const;
const NAME_ROOM = 40;

export function Beside(graph: FlamegraphProps) {
  const { tree, focus, measure, foot, pointed, ...rest } = graph;
  const before = useMemo(() => withWidth(tree, "before"), [tree]);
  const after = useMemo(() => withWidth(tree, "after"), [tree]);
  const { normalize, unit, sideNames, sideCores = null, choice = "", sums = null } = measure;
  const wholes = [sent.value.tree?.diff?.baseTotal[ROOT] ?? 0, measure.samples] as const;
  const { levels, widths, isCores } = besideLevels(tree, focus, sideCores, wholes);
  const counts = [tree.diff?.baseTotal[focus] ?? 0, tree.total[focus] ?? 0] as const;
  const told = (at: 0 | 1) => {
    if (choice !== "" && sums !== null) return figureWords(counts[at], choice, worthOf(sums[at], unit));
    if (isCores || normalize === null) return rateText(levels[at], unit);
    return `${normText(levels[at], at, measure)} ${normWords(measure)}`;
  };
  const smaller = widths[0] < widths[1] ? 0 : 1;
  const name = focus === ROOT ? "" : `${fitName(titleOf(tree, focus), NAME_ROOM)}: `;
  const side = (at: 0 | 1) => (
    <section class="beside-side" data-testid={`beside-${LETTERS[at]}`} aria-label={`Graph of ${LETTERS[at]}`}>
      <p class="beside-title">
        <span class={`side ${at === 0 ? "base" : "comparison"}`}>
          <span class="side-letter">{LETTERS[at]}</span>
          {sideNames.names[at] !== LETTERS[at] && <bdi>{sideNames.names[at]}</bdi>}
        </span>{" "}
        <span class="dim">{name}</span>
        <b>{told(at)}</b>
      </p>
      {widths[at] > 0 ? (
        <div class="beside-graph" style={{ width: `${widths[at] * 100}%` }}>
          <Flamegraph
            {...rest}
            tree={at === 0 ? before : after}
            focus={focus}
            measure={{ ...measure, title: `side ${LETTERS[at]} of ${measure.title}` }}
            // What is pointed at on one side is found on the other.
            pointed={pointed ?? pointedFrame.value}
          />
        </div>
      ) : (
        <p class="beside-none dim">No samples of it in {LETTERS[at]}.</p>
      )}
    </section>
  );
  return (
    <div class="beside">
      <div class="beside-sides">
        {side(0)}
        {side(1)}
      </div>
      <div class="flame-status">
        {foot}
        <span role="status" aria-live="polite" data-testid="selected-frame" dir="auto">
          {rest.selected === null ? "" : frameText(tree, rest.selected, focus, measure)}
        </span>
        <span class="dim" data-testid="beside-note">
          Equal widths are equal {isCores ? rateHead(unit) : "amounts"} on both sides
          {levels[0] === levels[1] ? "" : `: ${LETTERS[smaller]} is ${percent(widths[smaller])} as wide`}
        </span>
      </div>
    </div>
  );
}
