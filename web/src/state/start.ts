/**
 * Starts all that the page does by itself: it reads the address, lets time run, asks the server and follows the state.
 * Modules do nothing when they are imported, so that this order is the only one: an answer is asked for in the order in
 * which the list has it. What is fetched with a lazy view has a start of its own, see `views/lazyViews.tsx`.
 */
import { startAddress } from "./address/page.ts";
import { startAdvance } from "./answers/advance.ts";
import { nodes } from "./answers/agents.ts";
import { baselineHistory, compareSeries, diff, diffTop } from "./answers/compare.ts";
import { exploreSeries, flamegraph, ranking } from "./answers/explore.ts";
import { heatmap } from "./answers/heatmap.ts";
import { kernelSeries, lists } from "./answers/lists.ts";
import { valueNames } from "./answers/names.ts";
import { info, labels, types } from "./answers/server.ts";
import { startClock, startLive } from "./live.ts";
import { startRecent } from "./moments/recent.ts";
import { startPair } from "./screen/pair.ts";
import { startPrinting } from "./screen/printing.ts";
import { startSearch, wholeMatch } from "./screen/search.ts";
import { startTheme } from "./screen/theme.ts";
import { startChanges } from "./screen/tree.ts";
import { startZone } from "./screen/zone.ts";

export function start(): void {
  startAddress();
  startRecent();
  startZone();
  startClock();
  const answers = [exploreSeries, heatmap, flamegraph, baselineHistory, compareSeries, diff, diffTop, ranking];
  for (const answer of answers) answer.start();
  for (const answer of [nodes, info, labels, types]) answer.start();
  startAdvance();
  startLive();
  startChanges();
  startSearch();
  wholeMatch.start();
  startPrinting();
  startTheme();
  startPair();
  lists.start();
  kernelSeries.start();
  for (const names of Object.values(valueNames)) names.start();
}
