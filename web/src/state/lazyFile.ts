/**
 * A file of the page that the browser fetches when it is first wanted. In: how it is fetched. Out: signals of what it
 * has, and of whether it could not be had: the server no longer has the files of a page that was opened before its
 * upgrade. A fetch that failed is tried again when it is next asked for.
 */
import { type ReadonlySignal, signal } from "@preact/signals";

export interface LazyFile<T> {
  content: ReadonlySignal<T | null>;
  failed: ReadonlySignal<boolean>;
  /** Fetches it, at most once at a time; nobody waits for it. */
  fetch: () => void;
  /** The same before it is wanted, but for a file that failed: what says so must not go away below a hand. */
  prefetch: () => void;
}

export function lazyFile<T>(load: () => Promise<T>): LazyFile<T> {
  const content = signal<T | null>(null);
  const failed = signal(false);
  let isAsked = false;
  const fetch = () => {
    if (isAsked) return;
    isAsked = true;
    failed.value = false;
    load().then(
      (loaded) => {
        content.value = loaded;
      },
      () => {
        isAsked = false;
        failed.value = true;
      },
    );
  };
  const prefetch = () => {
    if (!failed.peek()) fetch();
  };
  return { content, failed, fetch, prefetch };
}
