/**
 * The page's state. In: the address and what the person does. Out: signals that views read. `navigate` is the only way
 * to change state; it writes the address, so that Back undoes and a copied link shows the same page.
 */
import { computed, signal } from "@preact/signals";
import { type PageState, readState, writeState } from "./url.ts";

export type { PageState } from "./url.ts";

const current = signal<PageState>(readState(location.search));

export const page = computed(() => current.value);

/** Counts up whenever everything shall be asked again: by the button, by the live timer, on return to the tab. */
export const refreshes = signal(0);

export function refresh(): void {
  refreshes.value++;
}

/** Steps of one gesture (typing, a key held down) that follow each other this closely are one step for Back. */
const GESTURE_MS = 1500;
let lastGesture = { name: "", at: 0 };

/**
 * Changes the state and the address. With a gesture's name, changes of the same gesture that follow quickly share one
 * step of the history.
 */
export function navigate(change: Partial<PageState>, gesture = ""): void {
  const next = { ...current.peek(), ...change };
  const text = writeState(next);
  if (text === writeState(current.peek())) return;
  const address = `${location.pathname}${text}${location.hash}`;
  const now = Date.now();
  const continued = gesture !== "" && gesture === lastGesture.name && now - lastGesture.at < GESTURE_MS;
  lastGesture = { name: gesture, at: now };
  if (continued) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  current.value = next;
}

addEventListener("popstate", () => {
  current.value = readState(location.search);
});

/** The address of this page with a change, for links that can be opened in another tab. */
export function linkTo(change: Partial<PageState>): string {
  return `${location.pathname}${writeState({ ...current.value, ...change })}`;
}
