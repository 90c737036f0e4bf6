/**
 * The only room that fetches. In: a path and its parameters; out: the decoded JSON, or an `ApiError` that says what was
 * wrong and what to do. It keeps nothing and retries nothing; the caller's `AbortSignal` ends a request. What only a
 * part that comes later asks for stands in a file of its own beside this one.
 */
import { address, type Parameters, ROOT } from "./address.ts";
import { ApiError } from "./error.ts";
import type {
  DiffAnswer,
  DiffTopRow,
  FacetsAnswer,
  FlamegraphAnswer,
  HeatmapAnswer,
  InfoAnswer,
  MarkersAnswer,
  NodeRow,
  RunQueueAnswer,
  SearchAnswer,
  SeriesAnswer,
  SqlAnswer,
  ThreadTimeAnswer,
  TimelineAnswer,
  TopAnswer,
  TopRow,
} from "./types.ts";

export type * from "./types.ts";
export { ApiError, type Parameters };

export function get<T>(path: string, parameters: Parameters, signal: AbortSignal): Promise<T> {
  return answered(address(path, parameters), { headers: { accept: "application/json" } }, signal);
}

/** The bytes of an answer that is decoded elsewhere. */
async function bytes(path: string, parameters: Parameters, signal: AbortSignal): Promise<ArrayBuffer> {
  const response = await taken(address(path, parameters), { headers: { accept: "application/json" } }, signal);
  return response.arrayBuffer();
}

export async function answered<T>(
  target: string,
  request: RequestInit,
  signal: AbortSignal,
  refused = refusal,
): Promise<T> {
  const body = await (await taken(target, request, signal, refused)).text();
  try {
    return JSON.parse(body) as T;
  } catch {
    throw notJson();
  }
}

export function notJson(): ApiError {
  return new ApiError("bad_answer", "The answer is not JSON.", "A proxy between here and the server?", 200);
}

/** What the server answered, where it did not refuse. */
export async function taken(
  target: string,
  request: RequestInit,
  signal: AbortSignal,
  refused = refusal,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(target, { ...request, signal });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(
      "network",
      "The server does not answer.",
      "Check that stakeout-server runs and that this browser can reach it.",
      0,
    );
  }
  if (!response.ok) throw refused(response.status, await response.text());
  return response;
}

function refusal(status: number, body: string): ApiError {
  // The server's hint is for programs.
  if (status === 401)
    return new ApiError(
      "unauthorized",
      "The server no longer takes this browser's token.",
      "Sign in with a valid one: what is chosen here stays.",
      status,
    );
  return told(status, body);
}

/** The server's own words. */
export function told(status: number, body: string): ApiError {
  try {
    const { error } = JSON.parse(body) as { error: { code?: string; message?: string; hint?: string } };
    return new ApiError(error.code ?? "internal", error.message ?? `Status ${status}.`, error.hint ?? "", status);
  } catch {
    return status === 431
      ? new ApiError("too_large", "The question is too long for the server.", "Look for a part of the name.", status)
      : new ApiError("internal", `The server answered with status ${status}.`, "The server's log says more.", status);
  }
}

export const api = {
  series: (parameters: Parameters, signal: AbortSignal) => get<SeriesAnswer>("/series", parameters, signal),
  /** As bytes: large trees are decoded apart from the page. */
  flamegraph: (parameters: Parameters, signal: AbortSignal) => bytes("/flamegraph", parameters, signal),
  /** What was observed of a window and what it lacks, whatever its frames. */
  observed: (parameters: Parameters, signal: AbortSignal) => get<FlamegraphAnswer>("/flamegraph", parameters, signal),
  /** What a search finds in all of a window. */
  match: async (parameters: Parameters, signal: AbortSignal) =>
    (await get<FlamegraphAnswer>("/flamegraph", parameters, signal)).match,
  /** As bytes, as a flamegraph. */
  diff: (parameters: Parameters, signal: AbortSignal) => bytes("/diff", parameters, signal),
  /** How a difference was judged, whatever its frames. */
  judged: (parameters: Parameters, signal: AbortSignal) => get<DiffAnswer>("/diff", parameters, signal),
  diffTop: (parameters: Parameters, signal: AbortSignal) => get<TopAnswer<DiffTopRow>>("/top", parameters, signal),
  ranking: (parameters: Parameters, signal: AbortSignal) => get<TopAnswer<TopRow>>("/top", parameters, signal),
  /** Where threads' time goes. */
  threadTime: (parameters: Parameters, signal: AbortSignal) =>
    get<ThreadTimeAnswer>("/thread_time", parameters, signal),
  /** Tables and charts by several labels at once. */
  facets: (parameters: Parameters, signal: AbortSignal) => get<FacetsAnswer>("/facets", parameters, signal),
  /** A word among the values of all labels and the names of functions. */
  search: (parameters: Parameters, signal: AbortSignal) => get<SearchAnswer>("/search", parameters, signal),
  heatmap: (parameters: Parameters, signal: AbortSignal) => get<HeatmapAnswer>("/heatmap", parameters, signal),
  timeline: (parameters: Parameters, signal: AbortSignal) => get<TimelineAnswer>("/timeline", parameters, signal),
  /** What ran before samples with a frame: with `before` and `match`, the timeline answers with a flamegraph. */
  before: (parameters: Parameters, signal: AbortSignal) => bytes("/timeline", parameters, signal),
  runQueue: (parameters: Parameters, signal: AbortSignal) => get<RunQueueAnswer>("/run_queue", parameters, signal),
  markers: (parameters: Parameters, signal: AbortSignal) => get<MarkersAnswer>("/markers", parameters, signal),
  sql: (query: string, signal: AbortSignal) =>
    answered<SqlAnswer>(
      `${ROOT}/sql`,
      { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query }) },
      signal,
    ),
  nodes: (signal: AbortSignal) => get<{ nodes: NodeRow[] }>("/nodes", {}, signal),
  info: (signal: AbortSignal) => get<InfoAnswer>("/info", {}, signal),
  labels: (signal: AbortSignal) => get<{ labels: string[] }>("/labels", {}, signal),
  labelValues: (label: string, parameters: Parameters) =>
    get<{ values: string[]; complete: boolean }>(
      `/labels/${encodeURIComponent(label)}/values`,
      parameters,
      AbortSignal.timeout(30_000),
    ),
};
