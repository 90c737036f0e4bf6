/** The page: the bar on top and one view below it. */
import { page } from "../state/index.ts";
import { Explore } from "./Explore.tsx";
import { Header } from "./Header.tsx";
import { Help } from "./Help.tsx";
import { Compare, Heatmap, Nodes, Timeline } from "./parts.tsx";

const TITLES = {
  explore: "Explore",
  compare: "Compare",
  heatmap: "Heatmap",
  timeline: "Timeline",
  nodes: "Nodes",
} as const;

export function App() {
  const { view, query } = page.value;
  document.title = `${query === "" ? "" : `${query} · `}${TITLES[view]} · Stakeout`;
  return (
    <>
      <Header />
      <main class={`main ${view}`}>
        <h1 class="visually-hidden">{TITLES[view]}</h1>
        {view === "explore" && <Explore />}
        {view === "compare" && <Compare />}
        {view === "heatmap" && <Heatmap />}
        {view === "timeline" && <Timeline />}
        {view === "nodes" && <Nodes />}
      </main>
      <Help />
    </>
  );
}
