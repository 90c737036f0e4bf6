/**
 * A file of the page that the browser loads when it is first wanted. In: how it is imported. Out: signals of what it
 * has, and of whether it could not be had: the server no longer has the files of a page that was opened before its
 * upgrade. What failed is tried again when it is next asked for.
 */
import { type ReadonlySignal, signal } from "@preact/signals";

export interface LazyFile<T> {
  content: ReadonlySignal<T | null>;
  failed: ReadonlySignal<boolean>;
  /** Loads it, at most once at a time; nobody waits for it. */
  load: () => void;
  /** The same before it is wanted, but for a file that failed: what says so must not go away below a hand. */
  preload: () => void;
}

export function lazyFile<T>(imported: () => Promise<T>): LazyFile<T> {
  const content = signal<T | null>(null);
  const failed = signal(false);
  let isAsked = false;
  const load = () => {
    if (isAsked) return;
    isAsked = true;
    failed.value = false;
    imported().then(
      (loaded) => {
        content.value = loaded;
      },
      () => {
        isAsked = false;
        failed.value = true;
      },
    );
  };
  const preload = () => {
    if (!failed.peek()) load();
  };
  return { content, failed, load, preload };
}
