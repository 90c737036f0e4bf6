/** One sentence of what the page did by itself, or why it could not; it holds for the selection that it is about. */
import { type ReadonlySignal, signal } from "@preact/signals";
import { askedFor, page } from "../address/page.ts";

interface Said {
  text: string;
  isBad: boolean;
  /** Of which selection. */
  of: string;
}

const newest = signal<Said | null>(null);

const subject = () => `${page.value.view === "compare"} ${page.value.query} ${page.value.baseQuery}`;

export const said: ReadonlySignal<Said | null> = newest;

export const isAbout = (one: Said) => one.of === subject();

export function say(text: string, isBad = false): void {
  newest.value = { text, isBad, of: subject() };
}

export function unsay(): void {
  newest.value = null;
}

/** Two versions against each other, by a file that is fetched when it is first wanted. */
export function compareVersionsOf(service: string | null, wanted: readonly string[] = []): void {
  const asked = askedFor.peek();
  import("./versions.ts").then(
    (file) => file.compareVersions(service, wanted, asked),
    () => say("A part of the page could not be loaded: load it anew.", true),
  );
}
