/** The page: the bar on top and one view below it. */
import { Fragment } from "preact";
import { lost, page } from "../state/address/page.ts";
import { said } from "../state/moments/said.ts";
import { Header } from "./bar/Header.tsx";
import { Help } from "./bar/Help.tsx";
import { PaletteKey } from "./bar/PaletteKey.tsx";
import { ValueMenu } from "./chart/ValueMenu.tsx";
import { Explore } from "./explore/Explore.tsx";
import { Compare, Heatmap, Nodes, SaidNote, Timeline } from "./lazyViews.tsx";
import { Scope } from "./scope/Scope.tsx";
import { EmptyNotice } from "./ui/Notices.tsx";
import { WheelHint } from "./wheel/WheelHint.tsx";

const TITLES = {
  explore: "Explore",
  compare: "Compare",
  heatmap: "Heatmap",
  timeline: "Timeline",
  nodes: "Nodes",
} as const;

/** An address that is not the page's: what stands there is no view of anything. */
function Lost({ what }: { what: string }) {
  document.title = "Not found · Stakeout";
  return (
    <main class="main">
      <h1 class="visually-hidden">Not found</h1>
      <EmptyNotice title={`There is no ${what} here.`}>
        <p>
          Look at{" "}
          {Object.entries(TITLES).map(([name, title]) => (
            <Fragment key={name}>
              <a class="button" href={name === "explore" ? "/" : `/?view=${name}`}>
                {title}
              </a>{" "}
            </Fragment>
          ))}
        </p>
      </EmptyNotice>
    </main>
  );
}

export function App() {
  const { view, query } = page.value;
  if (lost.value !== null) return <Lost what={lost.value} />;
  document.title = `${query === "" ? "" : `${query} · `}${TITLES[view]} · Stakeout`;
  return (
    <>
      <Header />
      {view !== "nodes" && <Scope />}
      <main class={`main ${view}`} tabIndex={-1}>
        <h1 class="visually-hidden">{TITLES[view]}</h1>
        {view === "explore" && <Explore />}
        {view === "compare" && <Compare />}
        {view === "heatmap" && <Heatmap />}
        {view === "timeline" && <Timeline />}
        {view === "nodes" && <Nodes />}
      </main>
      <Help />
      <ValueMenu />
      <PaletteKey />
      {said.value !== null && <SaidNote />}
      <WheelHint />
    </>
  );
}
