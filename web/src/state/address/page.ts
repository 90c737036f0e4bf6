/**
 * The page's state. In: the address and what the person does. Out: signals that views read. `navigate` is the only way
 * to change state; it writes the address, so that Back undoes and a copied link shows the same page.
 */
import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { groupBehind, rowsOf } from "../../logic/labels/rows.ts";
import { DEFAULTS, HOME, missingIn, type PageState, readState, unknownIn, writeState } from "./url.ts";

export type { PageState } from "./url.ts";

const current = signal<PageState>(DEFAULTS);

/** Each field of the state as a signal of its own. */
export const fields = Object.fromEntries(
  (Object.keys(DEFAULTS) as (keyof PageState)[]).map((key) => [key, computed(() => current.value[key])]),
) as { readonly [K in keyof PageState]: ReadonlySignal<PageState[K]> };

const ASKED = [
  ...(["view", "type", "query", "from", "until", "baseQuery", "baseFrom", "baseUntil"] as const),
  ...(["markA", "markB", "hit", "before"] as const),
];

/** What the page is asked, in one text: who waits for an answer sees by it whether somebody chose something else. */
export const askedFor = computed(() => JSON.stringify(ASKED.map((name) => fields[name].value)));

/**
 * Who reads fields of `value` follows those, and is not made anew with each letter of a search that it does not show.
 */
export const page = {
  value: Object.defineProperties(
    {},
    Object.fromEntries(
      Object.entries(fields).map(([key, field]) => [key, { get: () => field.value, enumerable: true }]),
    ),
  ) as Readonly<PageState>,
  peek: (): Readonly<PageState> => current.peek(),
};

/** Counts up whenever everything shall be asked again: by the button, by the live timer, on return to the tab. */
export const refreshes = signal(0);

export function refresh(): void {
  refreshes.value++;
}

/** Steps of one gesture (typing, a key held down) that follow each other this closely are one step for Back. */
const GESTURE_MS = 1500;
/**
 * Browsers take no more than about a hundred changes of the address in a short time: a long gesture writes it now and
 * then.
 */
const WRITTEN_AT_ONCE = 30;
const WRITE_MS = 250;
/**
 * A search that is typed is written, and becomes a step for Back, once it rests: a change of the address costs as much
 * as a letter, since browsers look at the page's icon again.
 */
const TYPED = "search";
let gesture = { name: "", at: 0, steps: 0 };
/** Changes within one handler of an event are one step, too. */
let isHandling = false;
/** What is still to be written: a step of its own, or the newest step again. */
let planned: { timer: ReturnType<typeof setTimeout>; isStep: boolean } | null = null;

/** What the address names, and the page does not have; null where it has it. */
const missing = signal<string | null>(null);

export const lost: ReadonlySignal<string | null> = missing;

/** What an address holds that means nothing here stays in it: a reload by another version may know it. */
let unknown = "";

function addressOf(state: PageState): string {
  const known = writeState(state);
  const search = unknown === "" ? known : `${known === "" ? "?" : `${known}&`}${unknown}`;
  return `${HOME}${search}${location.hash}`;
}

function write(isStep = planned?.isStep ?? false): void {
  clearTimeout(planned?.timer);
  planned = null;
  history[isStep ? "pushState" : "replaceState"](null, "", addressOf(current.peek()));
}

function plan(isStep: boolean): void {
  planned = { timer: setTimeout(() => write(), WRITE_MS), isStep: isStep || (planned?.isStep ?? false) };
}

/** Whether a change would be part of the newest gesture, and no step of its own. */
function goesOn(name: string): boolean {
  return name !== "" && name === gesture.name && Date.now() - gesture.at < GESTURE_MS;
}

/** A gesture of the wheel is over after this pause. */
const RESTS_MS = 220;

/** What a hand has begun, and the address does not have yet. */
interface Begun {
  /** The gesture that the change is a part of. */
  name: string;
  /** Whose it is: what the same one begins again takes its place. */
  by: object;
  take: () => void;
  undo: () => void;
}

let resting: (Begun & { timer: ReturnType<typeof setTimeout> }) | null = null;

function takeResting(): void {
  const begun = resting;
  clearTimeout(begun?.timer);
  resting = null;
  begun?.take();
}

/**
 * A gesture that the screen follows at once. It is taken when the hand rests, and before anything else changes the
 * address. Back takes back what was not taken yet, and leaves what was there before. What is returned gives it up.
 */
export function onceRested(begun: Begun): () => void {
  if (resting !== null && resting.by !== begun.by) takeResting();
  clearTimeout(resting?.timer);
  const mine = { ...begun, timer: setTimeout(takeResting, RESTS_MS) };
  resting = mine;
  return () => {
    if (resting !== mine) return;
    clearTimeout(mine.timer);
    resting = null;
  };
}

/**
 * Changes the state and the address. With a gesture's name, changes of the same gesture that follow quickly share one
 * step of the history. Where another frame is zoomed, all of its width is in sight, and its tree opens as trees do.
 */
export function navigate(change: Partial<PageState>, name = ""): void {
  takeResting();
  const next = { ...current.peek(), ...("focus" in change ? { part: "", open: "" } : {}), ...change };
  next.group = groupBehind(current.peek(), next);
  if (writeState(next) === writeState(current.peek()) && missing.peek() === null) return;
  const isContinued = goesOn(name);
  const steps = isContinued ? gesture.steps + 1 : 0;
  const isStep = !isContinued && !isHandling;
  if (isStep && planned !== null) write();
  current.value = next;
  missing.value = null;
  if (name === TYPED) {
    clearTimeout(planned?.timer);
    plan(isStep);
  } else if (isStep) write(true);
  else if (steps < WRITTEN_AT_ONCE) write();
  else if (planned === null) plan(false);
  gesture = { name, at: Date.now(), steps };
  isHandling = true;
  queueMicrotask(() => {
    isHandling = false;
  });
}

/** Changes the state where it came to be, by no step of a person: Back leads to what was before both. */
export function amend(change: Partial<PageState>): void {
  current.value = { ...current.peek(), ...change };
  write();
}

function read(): void {
  current.value = readState(location.search);
  missing.value = missingIn(location);
  unknown = missing.value === null ? unknownIn(location.search) : "";
}

const wentBack = signal(0);

/** Moves with Back and Forward: what was begun before is of the page that was left. */
export const returns: ReadonlySignal<number> = wentBack;

/** The address as the page was opened with it; from then on, Back and Forward. */
export function startAddress(): void {
  read();
  addEventListener("pagehide", () => {
    if (planned !== null) write(false);
  });

  addEventListener("popstate", () => {
    const [undone, begun] = [planned, resting];
    const isNoStep = undone?.isStep === true || (begun !== null && !goesOn(begun.name));
    clearTimeout(undone?.timer);
    clearTimeout(begun?.timer);
    gesture = { name: "", at: 0, steps: 0 };
    planned = null;
    resting = null;
    begun?.undo();
    wentBack.value++;
    // What was typed or begun just now is no step yet: what Back came to is one too far.
    if (isNoStep) history.forward();
    else read();
  });
}

/** Labels whose values stand as rows above the stacks. */
export const rows = computed(() => rowsOf(page.value));

/** The address of this page with a change, for links that can be opened in another tab. */
export function linkTo(change: Partial<PageState>): string {
  return `${HOME}${writeState({ ...current.value, ...change })}`;
}

/** Groups of controls that are out of sight until they are wanted. */
export const FOLDS = ["chart", "data", "filter", "graph", "key", "sides", "totals"] as const;
export type Fold = (typeof FOLDS)[number];

const openFolds = computed(() => new Set(fields.more.value.split(",").filter((name) => name !== "")));

export function isOpen(fold: Fold): boolean {
  return openFolds.value.has(fold);
}

/** Unfolds what is folded, and folds what is not. */
export function toggle(fold: Fold): void {
  const next = new Set(openFolds.peek());
  if (!next.delete(fold)) next.add(fold);
  navigate({ more: [...next].sort().join(",") });
}
