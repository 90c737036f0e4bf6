/** Time against the offset within each second: when it ran, and by marking, what ran then. */
import { useMemo } from "preact/hooks";
import {
  cellsOf,
  classesOf,
  classText,
  columnText,
  samplesWithin,
  shownCells,
  spanWords,
} from "../../logic/heatmap/heatmap.ts";
import { COLUMN_MS, columnMs, parseMark, type Side } from "../../logic/heatmap/marks.ts";
import { duration } from "../../logic/text/format.ts";
import { amountHead, amountText, isWait, type Unit, unitOf } from "../../logic/text/unit.ts";
import { spanText } from "../../logic/time/spans.ts";
import { ordered } from "../../logic/time/windows.ts";
import { linkTo, navigate, page } from "../../state/address/page.ts";
import { comparing } from "../../state/answers/compare.ts";
import { heatmap, marks } from "../../state/answers/heatmap.ts";
import { range } from "../../state/question/question.ts";
import { theme } from "../../state/screen/theme.ts";
import { ExploreProfile } from "../explore/Explore.tsx";
import { CompareProfile, MarkersMenu, WaitChips } from "../lazyViews.tsx";
import { Choice, Segments } from "../ui/Choice.tsx";
import { Busy, ErrorNotice, Missing } from "../ui/Notices.tsx";
import { HeatCanvas } from "./HeatCanvas.tsx";
import { heatRamp } from "./paint.ts";

type Letter = "A" | "B";

/** Marks stand for moments: a range that followed the present stays where it is. */
function mark(letter: Letter, text: string): void {
  const { from, until } = range.peek();
  const other = letter === "A" ? page.peek().markB : page.peek().markA;
  navigate({
    [letter === "A" ? "markA" : "markB"]: text,
    ...(text === "" && other === "rest" ? { markA: "", markB: "" } : {}),
    from: String(from),
    until: String(until),
    live: false,
    focus: "",
  });
}

/** All but what is marked becomes the other side. */
function markRest(): void {
  const { markA, markB } = page.peek();
  if (parseMark(markA) instanceof Object) mark("B", "rest");
  else if (parseMark(markB) instanceof Object) mark("A", "rest");
}

export function Heatmap() {
  return (
    <>
      <HeatCard />
      {isWait(page.value.type) && <WaitChips />}
      {comparing.value ? <CompareProfile /> : <ExploreProfile />}
    </>
  );
}

function HeatCard() {
  // For hands without an Alt key.
  const { letter } = page.value;
  const answer = heatmap.data.value;
  const error = heatmap.error.value;
  const loading = heatmap.loading.value;
  const shown = useMemo(() => (answer === null ? null : shownCells(answer)), [answer]);
  if (answer === null || shown === null) {
    // What is below says the same.
    if (error?.code === "bad_query") return null;
    return <Missing error={error} loading={loading} kind="chart" />;
  }
  const { grid, cells } = shown;
  const classes = classesOf(cells);
  // Of samples of different rates, cells are CPU time.
  const unit = unitOf(answer);
  const { a, b } = marks.value;
  return (
    <section class="card heat" aria-label="Heatmap">
      <Busy on={loading} />
      {error !== null && <ErrorNotice error={error} />}
      <div class="toolbar">
        <h2>Sub-second heatmap</h2>
        <ColumnChoice />
        <Segments
          name="A drag marks"
          value={letter}
          options={(["A", "B"] as const).map((one) => [one, `mark ${one}`, `A drag marks ${one}; with Alt the other`])}
          onChoose={(chosen) => navigate({ letter: chosen })}
        />
        <Marked letter="A" side={a} />
        <Marked letter="B" side={b} />
        <Actions a={a} b={b} />
        <MarkersMenu />
        <span class="spring" />
        <Legend classes={classes} unit={unit} />
      </div>
      <HeatCanvas
        cells={cells}
        grid={grid}
        classes={classes}
        gaps={answer.exposure.gaps}
        theme={theme.value}
        a={a === null ? null : cellsOf(grid, a.window)}
        b={b === null ? null : cellsOf(grid, b.window)}
        isStale={heatmap.stale.value}
        restA={a?.except != null}
        restB={b?.except != null}
        letter={letter}
        onMark={(window, which) => mark(which, spanText(window))}
        onClear={() => navigate({ markA: "", markB: "", focus: "" })}
        onRest={markRest}
        wordsFor={(run) => amountText(samplesWithin(cells, run), unit)}
      />
    </section>
  );
}

function ColumnChoice() {
  const window = range.value;
  return (
    <Choice
      label="Column width"
      id="column"
      value={page.value.column}
      options={[
        ["", `auto (${columnText(columnMs(window, ""))})`],
        ...COLUMN_MS.filter((ms) => columnMs(window, String(ms / 1000)) === ms).map(
          (ms) => [String(ms / 1000), columnText(ms)] as const,
        ),
      ]}
      onChoose={(chosen) => navigate({ column: chosen })}
    />
  );
}

/** The text of a mark: what is selected, for how long, and a way to forget it. */
function Marked({ letter, side }: { letter: Letter; side: Side | null }) {
  if (side === null) return null;
  const { window, except } = side;
  return (
    <span class={`side ${letter === "A" ? "base" : "comparison"}`} data-testid={`mark-${letter}`}>
      <span class="side-letter">{letter}</span>
      {except === null ? (
        <span>
          {spanWords(window)} <span class="dim">({duration((window.until - window.from) / 1000)})</span>
        </span>
      ) : (
        <span>the rest</span>
      )}
      <button
        type="button"
        class="button tiny"
        aria-label={`Clear ${letter}`}
        title={`Clear ${letter}`}
        onClick={() => mark(letter, "")}
      >
        ×
      </button>
    </span>
  );
}

function Actions({ a, b }: { a: Side | null; b: Side | null }) {
  const { markA, markB } = page.value;
  const one = a ?? b;
  if (one === null) {
    return <span class="dim">Drag over cells to see what ran then; with Alt to mark what to compare it with.</span>;
  }
  const single = (a?.except == null ? a : null) ?? b;
  const window = single?.window ?? one.window;
  return (
    <>
      {(a === null || b === null) && (
        <button
          type="button"
          class="button"
          data-testid="rest"
          title="Compare it with all the rest of the range"
          onClick={markRest}
        >
          Compare with the rest
        </button>
      )}
      {a !== null && b !== null && (
        <button
          type="button"
          class="button"
          title="Exchange A and B: red is then what A has more of"
          onClick={() => navigate({ markA: markB, markB: markA, focus: "" })}
        >
          ⇄ Swap
        </button>
      )}
      <button
        type="button"
        class="button"
        title="Let the heatmap show this time only"
        onClick={() => {
          const { from, until } = ordered(window.from, window.until);
          navigate({ from: String(from), until: String(until), markA: "", markB: "", live: false, focus: "" });
        }}
      >
        Zoom in
      </button>
      <a
        class="button"
        href={linkTo({
          view: "timeline",
          from: String(Math.floor(window.from)),
          until: String(Math.ceil(window.until)),
          zoom: "",
          focus: "",
        })}
        title="The samples of this time one by one"
      >
        Timeline
      </a>
    </>
  );
}

function Legend({ classes, unit }: { classes: number[]; unit: Unit }) {
  if (classes.length === 0) return null;
  return (
    <ul class="legend heat-legend" aria-busy={heatmap.stale.value} aria-label="What a colour stands for">
      <li>{amountHead(unit)} in a cell:</li>
      {classes.map((_, i) => (
        <li key={i}>
          <i class="swatch" style={{ background: heatRamp(theme.value, i, classes.length) }} />
          {classText(classes, i, unit)}
        </li>
      ))}
    </ul>
  );
}
