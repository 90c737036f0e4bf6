/** The bar on top: where one is, what is selected, which time, and how to add a machine. */
import { isRelative, parseTime } from "../../logic/time/time.ts";
import { ordered, pairTexts, placeWithin } from "../../logic/time/windows.ts";
import { navigate, page, refresh } from "../../state/address/page.ts";
import { pair } from "../../state/answers/compare.ts";
import { present, range } from "../../state/question/question.ts";
import { theme } from "../../state/screen/theme.ts";
import { Compare, Heatmap, InstallLine, Nodes, ShareChoices, Threads, Timeline } from "../lazyViews.tsx";
import { Go } from "../ui/Go.tsx";
import { NARROW, useMedia } from "../ui/hooks.ts";
import { Menu } from "../ui/Menu.tsx";
import { Progress } from "../ui/Notices.tsx";
import { Build } from "./Build.tsx";
import { HelpButton, SavedButton } from "./Help.tsx";
import { PaletteButton } from "./PaletteKey.tsx";
import { TimeRange } from "./TimeRange.tsx";

/** Name, title, and what has to be fetched before it is shown. */
export const VIEWS = [
  ["explore", "Explore", null],
  ["compare", "Compare", Compare],
  ["heatmap", "Heatmap", Heatmap],
  ["timeline", "Timeline", Timeline],
  ["threads", "Threads' time", Threads],
  ["nodes", "Nodes", Nodes],
] as const;

export type View = (typeof VIEWS)[number][0];

export const titleOf = (view: View) => VIEWS.find(([name]) => name === view)?.[1];

/** What changes with the view: a comparison starts from the range that was looked at, and leads back to it. */
export function changeFor(view: View) {
  const { from, until, baseFrom, baseUntil, view: old } = page.value;
  if (view !== "compare" || old === "compare") return { view, focus: "", zoom: "", box: "" };
  // Where no side A was chosen for this very window, the page chooses one.
  const isKept = baseFrom !== "" && baseUntil !== "" && !isRelative(from) && !isRelative(until);
  return {
    view,
    focus: "",
    baseFrom: isKept ? baseFrom : "",
    baseUntil: isKept ? baseUntil : "",
    chartFrom: "",
    chartUntil: "",
    live: false,
  };
}

/** Skips what stands above the frames. */
function toFrames(): void {
  const frames = document.querySelector<HTMLElement>("[data-frames]") ?? document.querySelector("main");
  frames?.focus();
  frames?.scrollIntoView({ block: "nearest" });
}

export function Header() {
  const { view } = page.value;
  const isNarrow = useMedia(NARROW);
  return (
    <header class="header">
      <button type="button" class="skip button" onClick={toFrames}>
        {view === "nodes" || view === "threads" ? "Skip to the list" : "Skip to the frames"}
      </button>
      <Go
        class="brand"
        href="/"
        change={{ view: "explore" }}
        aria-label="Stakeout"
        onGo={() => navigate(changeFor("explore"))}
      >
        <img src="/favicon.svg" alt="" width="22" height="22" />
        {!isNarrow && <span>Stakeout</span>}
      </Go>
      {isNarrow ? <ViewsMenu /> : <Views />}
      {view !== "compare" && view !== "nodes" && <PageRange />}
      {view === "compare" && <CompareRange />}
      <Progress />
      <div class="header-end">
        {!isNarrow && <Build />}
        {isNarrow ? (
          <Menu label="⋯" name="More" class="to-left" onNear={ShareChoices.preload}>
            {(close) => (
              <div class="more-panel">
                <ShareChoices close={close} />
                <InstallLine />
                <div class="more-end">
                  <PaletteButton isWord />
                  <SavedButton />
                  <ThemeButton />
                  <HelpButton />
                  <Build />
                </div>
              </div>
            )}
          </Menu>
        ) : (
          <>
            {/* Elsewhere it stands beside the selector. */}
            {view === "nodes" && <PaletteButton />}
            <Menu label="Share ▾" name="Share" class="to-left" onNear={ShareChoices.preload}>
              {(close) => <ShareChoices close={close} />}
            </Menu>
            <SavedButton />
            <InstallMenu />
            <ThemeButton />
            <HelpButton />
          </>
        )}
      </div>
    </header>
  );
}

function Views({ onGo }: { onGo?: () => void }) {
  const { view } = page.value;
  return (
    <nav class="tabs" aria-label="Views">
      {VIEWS.map(([name, title, part]) => (
        <Go
          key={name}
          change={{ view: name }}
          aria-current={view === name ? "page" : undefined}
          onPointerEnter={part?.preload}
          onFocus={part?.preload}
          onGo={() => {
            navigate(changeFor(name));
            onGo?.();
          }}
        >
          {title}
        </Go>
      ))}
    </nav>
  );
}

/** The same where the bar has no room for all. */
function ViewsMenu() {
  return (
    <Menu label={`${titleOf(page.value.view)} ▾`} name="Views" class="views-menu">
      {(close) => <Views onGo={close} />}
    </Menu>
  );
}

function InstallMenu() {
  return (
    <Menu
      label={
        <>
          +<span class="visually-hidden"> Add machine</span>
        </>
      }
      name="Add a machine"
      class="to-left"
      onNear={InstallLine.preload}
    >
      {() => <InstallLine />}
    </Menu>
  );
}

function PageRange() {
  const { from, until, live } = page.value;
  return (
    <TimeRange
      window={range.value}
      from={from}
      until={until}
      now={present.value}
      live={live}
      onRange={(a, b) => navigate({ from: a, until: b, zoom: "", box: "", live: live && b === "now" })}
      onLive={(on) => navigate({ live: on })}
      onRefresh={refresh}
    />
  );
}

/** In a comparison the range is what the chart shows; both windows are moved into it where they don't lie there. */
function CompareRange() {
  const { base, comparison, chart } = pair.value;
  return (
    <TimeRange
      window={chart}
      from=""
      until=""
      now={present.value}
      live={false}
      onRange={(a, b) => {
        const now = Date.now();
        const wanted = ordered(parseTime(a, now) ?? chart.from, parseTime(b, now) ?? chart.until);
        const placed = placeWithin({ base, comparison }, wanted);
        navigate({
          chartFrom: String(wanted.from),
          chartUntil: String(wanted.until),
          ...pairTexts(placed),
        });
      }}
      onLive={() => {}}
      onRefresh={refresh}
    />
  );
}

function ThemeButton() {
  const next = theme.value === "dark" ? "light" : "dark";
  return (
    <button
      type="button"
      class="button icon"
      title={`Switch to ${next} colours`}
      aria-label={`Switch to ${next} colours`}
      data-testid="theme"
      onClick={() => navigate({ theme: next })}
    >
      {theme.value === "dark" ? "☀" : "☾"}
    </button>
  );
}
