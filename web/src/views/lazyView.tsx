/**
 * Parts of the page that come over the network when they are first wanted. Until a part is there something stands in its place; where it can't
 * be fetched, a notice says why and what to do: the files of a page that was opened before the server's upgrade are gone.
 */
import { signal } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { EmptyNotice } from "./ui/Notices.tsx";

export interface LazyView<P> {
  (props: P): ComponentChildren;
  /** Fetches it before it is shown. */
  prefetch: () => void;
}

export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
  meanwhile: ComponentChildren = null,
): LazyView<P> {
  const loaded = signal<ComponentType<P> | null>(null);
  const failed = signal(false);
  let isAsked = false;
  const prefetch = () => {
    if (isAsked) return;
    isAsked = true;
    failed.value = false;
    load().then(
      (part) => {
        loaded.value = part;
      },
      () => {
        isAsked = false;
        failed.value = true;
      },
    );
  };
  const Lazy = (props: P) => {
    useEffect(prefetch, []);
    const Loaded = loaded.value;
    if (Loaded !== null) return <Loaded {...props} />;
    return failed.value ? <Unloaded onRetry={prefetch} /> : meanwhile;
  };
  return Object.assign(Lazy, { prefetch });
}

function Unloaded({ onRetry }: { onRetry: () => void }) {
  return (
    <div role="alert">
      <EmptyNotice title="This part of the page could not be loaded.">
        <p>
          The server does not answer, or was upgraded since this page was opened: then the page has to be loaded anew.
          What is chosen stands in the address and stays.
        </p>
        <button type="button" class="button primary" onClick={() => location.reload()}>
          Reload the page
        </button>{" "}
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      </EmptyNotice>
    </div>
  );
}
