/** Two versions of a service against each other, and what is said of how they were chosen. */
import { effect } from "@preact/signals";
import { ApiError, api } from "../../api/index.ts";
import { ofAllVersions, runsOf, versionPair } from "../../logic/compare/versions.ts";
import { parseSelector, withMatcher } from "../../logic/labels/selector.ts";
import { plainLine } from "../../logic/text/plain.ts";
import { type Pair, pairTexts, type Window } from "../../logic/time/windows.ts";
import { askedFor, navigate, page } from "../address/page.ts";
import { announce } from "../question/resource.ts";
import { chartWindow } from "./markers.ts";
import { say, unsay } from "./said.ts";

const MOST_VERSIONS = 1_000;

function subjectOf(query: string): string {
  const service = parseSelector(query)?.find(({ label, operator }) => label === "service" && operator === "=");
  return service === undefined ? "what is selected" : plainLine(service.value, 80);
}

interface Compared {
  baseQuery: string;
  chart: Window | null;
  normalize: "" | "rate";
}

/** Two windows of one selection, or of two. */
export function compareWindows(
  pair: Pair,
  query: string,
  { baseQuery = "", chart = null, normalize = "" }: Partial<Compared> = {},
): void {
  navigate({
    view: "compare",
    query,
    baseQuery,
    ...pairTexts(pair),
    chartFrom: chart === null ? "" : String(chart.from),
    chartUntil: chart === null ? "" : String(chart.until),
    normalize,
    focus: "",
    live: false,
  });
}

/** Ends the question that is under way. */
let endLast = () => {};

/**
 * Compares two versions of what is selected, or of one service: those with most samples in the charts' range, or the
 * wanted ones. Whoever asks for other versions meanwhile, or looks at something else than what is `asked`, has no more
 * use for them.
 */
export async function compareVersions(service: string | null, wanted: readonly string[], asked: string): Promise<void> {
  endLast();
  if (askedFor.peek() !== asked) return;
  const all = ofAllVersions(page.peek().query);
  const query = service === null ? all : withMatcher(all, { label: "service", operator: "=", value: service });
  const window = chartWindow();
  const stop = new AbortController();
  endLast = () => stop.abort();
  const unwatch = effect(() => {
    if (askedFor.value !== asked) stop.abort();
  });
  unsay();
  const done = announce({ name: "versions", since: Date.now(), cancel: () => stop.abort() });
  try {
    const parameters = { type: page.peek().type, query, ...window, by: "version", limit: MOST_VERSIONS };
    const runs = runsOf(await api.series(parameters, stop.signal));
    if (stop.signal.aborted) return;
    const pair = versionPair(runs, wanted, subjectOf(query));
    if (typeof pair === "string") {
      say(pair, true);
      return;
    }
    const of = (version: string) => withMatcher(query, { label: "version", operator: "=", value: version });
    // One after the other on the same machines: time is compared with time, and what did not change stays grey.
    compareWindows(pair, of(pair.versions[1]), {
      baseQuery: of(pair.versions[0]),
      chart: window,
      normalize: pair.isShared ? "" : "rate",
    });
    say(pair.said);
  } catch (error) {
    if (stop.signal.aborted) return;
    say(error instanceof ApiError ? error.message : String(error), true);
  } finally {
    unwatch();
    done();
  }
}
