/**
 * Closer looks that the server knows, newest first. They are asked for while their dialog is open, and again only as
 * long as one is under way. The token for them is kept in memory alone: neither the address nor the browser has it.
 */
import { type ReadonlySignal, signal } from "@preact/signals";
import { burstsApi } from "../../api/bursts.ts";
import { ApiError, type Burst, type BurstRequest } from "../../api/index.ts";
import { isUnderWay } from "../../logic/agents/bursts.ts";

const TIMEOUT_MS = 30_000;
const POLL_MS = 1_000;

interface Shelf {
  bursts: readonly Burst[];
  /** Why they are not known; null where they are. */
  fault: ApiError | null;
}

const shelf = signal<Shelf | null>(null);

/** Null until the server answered. */
export const bursts: ReadonlySignal<Shelf | null> = shelf;

export const burstToken = signal("");

const patience = () => AbortSignal.timeout(TIMEOUT_MS);
const faultOf = (error: unknown) =>
  error instanceof ApiError ? error : new ApiError("bad_answer", String(error), "", 0);
const newestFirst = (all: readonly Burst[]) => all.toSorted((a, b) => b.created_ms - a.created_ms);

/** Counts up with each question and each change: an answer from before the last of them is of no use. */
let turn = 0;

export async function askBursts(): Promise<void> {
  const mine = ++turn;
  try {
    const answer = await burstsApi.all(patience());
    if (mine === turn) shelf.value = { bursts: newestFirst(answer.bursts), fault: null };
  } catch (error) {
    if (mine === turn) shelf.value = { bursts: shelf.peek()?.bursts ?? [], fault: faultOf(error) };
  }
}

/** Asks at once, and then as long as one is under way; what is returned ends it. */
export function followBursts(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const again = () => {
    if (isOver) return;
    const isWanted = !document.hidden && (shelf.peek()?.bursts ?? []).some(isUnderWay);
    const next = () => {
      timer = setTimeout(again, POLL_MS);
    };
    if (isWanted) void askBursts().then(next);
    else next();
  };
  void askBursts().then(again);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

function merge(changed: readonly Burst[]): void {
  turn++;
  const ids = new Set(changed.map(({ id }) => id));
  const others = (shelf.peek()?.bursts ?? []).filter(({ id }) => !ids.has(id));
  shelf.value = { bursts: newestFirst([...changed, ...others]), fault: null };
}

/** What came of a wish: the bursts, or why not. */
export type Outcome = { bursts: readonly Burst[] } | { fault: ApiError };

async function attempt(act: () => Promise<readonly Burst[]>): Promise<Outcome> {
  try {
    const changed = await act();
    merge(changed);
    return { bursts: changed };
  } catch (error) {
    return { fault: faultOf(error) };
  }
}

export function beginBursts(request: BurstRequest): Promise<Outcome> {
  return attempt(async () => (await burstsApi.begin(request, burstToken.peek(), patience())).bursts);
}

export function endBurst({ id }: Burst): Promise<Outcome> {
  return attempt(async () => (await burstsApi.end(id, burstToken.peek(), patience())).bursts);
}
