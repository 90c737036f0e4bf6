/** Views that are kept: the last addresses in this browser, and those with names on the server, which all share. */
import { type ReadonlySignal, signal } from "@preact/signals";
import { ApiError, type SavedView } from "../../api/index.ts";
import { viewsApi } from "../../api/views.ts";
import { isOwn, type Recent, recentOf, remembered } from "../../logic/saved/recent.ts";
import { linkTo } from "../address/page.ts";
import { keep, kept } from "../screen/kept.ts";

const KEPT = "recent";

const list = signal<readonly Recent[] | null>(null);

export function recent(): readonly Recent[] {
  list.value ??= recentOf(kept(KEPT));
  return list.value;
}

function write(next: readonly Recent[]): void {
  list.value = next;
  keep(KEPT, JSON.stringify(next));
}

export function remember(address: string): void {
  // Another tab may have kept some meanwhile.
  write(remembered(recentOf(kept(KEPT)), address, Date.now()));
}

export function forgetRecent(): void {
  write([]);
}

interface Shelf {
  views: readonly SavedView[];
  /** Why they are not known; empty where they are. */
  fault: string;
}

const shelf = signal<Shelf | null>(null);

/** Null until the server answered. */
export const saved: ReadonlySignal<Shelf | null> = shelf;

const TIMEOUT_MS = 30_000;
const patience = () => AbortSignal.timeout(TIMEOUT_MS);
const faultOf = (error: unknown) => (error instanceof ApiError ? error.message : String(error));

/** Counts up with each question: an answer to one before the last is of no use. */
let turn = 0;

/** What there is now, also where somebody asked again meanwhile. */
export async function askSaved(): Promise<readonly SavedView[]> {
  const mine = ++turn;
  const told = (next: Shelf) => {
    if (mine === turn) shelf.value = next;
    return next.views;
  };
  try {
    const { views } = await viewsApi.all(patience());
    return told({ views: views.filter(({ address }) => isOwn(address)), fault: "" });
  } catch (error) {
    return told({ views: shelf.peek()?.views ?? [], fault: faultOf(error) });
  }
}

/**
 * What came of a wish to keep or remove a view: done; or there is another one of this name than the asker knows, or
 * none any more; or why not.
 */
export type Kept = { is: "done" } | { is: "conflict"; theirs: SavedView | null } | { is: "refused"; why: string };

async function attempt(name: string, act: () => Promise<unknown>): Promise<Kept> {
  try {
    await act();
    await askSaved();
    return { is: "done" };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 412) return { is: "refused", why: faultOf(error) };
    const views = await askSaved();
    return { is: "conflict", theirs: views.find((one) => one.name === name) ?? null };
  }
}

/** Keeps the page's address. Without a tag only where there is none of the name, with one only where it still holds. */
export function saveView(name: string, tag: string | null): Promise<Kept> {
  return attempt(name, () => viewsApi.keep(name, linkTo({}), tag, patience()));
}

export function removeView({ name, tag }: SavedView): Promise<Kept> {
  return attempt(name, () => viewsApi.remove(name, tag, patience()));
}
