/** The page: the bar on top and one view below it. */
import { shownText } from "../logic/text/plain.ts";
import { lost, page } from "../state/address/page.ts";
import { said } from "../state/moments/said.ts";
import { Header, titleOf } from "./bar/Header.tsx";
import { Help } from "./bar/Help.tsx";
import { PaletteKey } from "./bar/PaletteKey.tsx";
import { openValue } from "./chart/ValueButtons.tsx";
import { Explore } from "./explore/Explore.tsx";
import { Compare, Heatmap, Lost, Nodes, SaidNote, Threads, Timeline, ValueMenu } from "./lazyViews.tsx";
import { Scope } from "./scope/Scope.tsx";
import { WheelHint } from "./wheel/WheelHint.tsx";

/** Of the selector in the window's title. */
const TITLE_ROOM = 200;

export function App() {
  const { view, query } = page.value;
  if (lost.value !== null) return <Lost what={lost.value} />;
  document.title = `${query === "" ? "" : `${shownText(query, TITLE_ROOM)} · `}${titleOf(view)} · Stakeout`;
  return (
    <>
      <Header />
      {view !== "nodes" && <Scope />}
      <main class={`main ${view}`} tabIndex={-1}>
        <h1 class="visually-hidden">{titleOf(view)}</h1>
        {view === "explore" && <Explore />}
        {view === "compare" && <Compare />}
        {view === "heatmap" && <Heatmap />}
        {view === "timeline" && <Timeline />}
        {view === "threads" && <Threads />}
        {view === "nodes" && <Nodes />}
      </main>
      <Help />
      {openValue.value !== null && <ValueMenu />}
      <PaletteKey />
      {said.value !== null && <SaidNote />}
      <WheelHint />
    </>
  );
}
