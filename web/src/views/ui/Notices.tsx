/** What stands where an answer should be: an error with what to do, an empty window, something on its way. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "../../api/error.ts";
import { duration } from "../../logic/text/format.ts";
import { refresh } from "../../state/address/page.ts";
import { cancelAll, type Pending, pending, SLOW_MS } from "../../state/question/resource.ts";

/** Where no answer is there yet: why there is none, or that it is on its way. */
export function Missing({ error, loading, kind = "" }: { error: ApiError | null; loading: boolean; kind?: string }) {
  if (error !== null) return <ErrorNotice error={error} />;
  // It may wait for another answer first, by which it is asked.
  const isComing = loading || pending.value.length > 0;
  return (
    <div class={`card waiting ${kind}`}>
      <Busy on={isComing} />
      {isComing && <p>Waiting for the server …</p>}
    </div>
  );
}

export function ErrorNotice({ error }: { error: ApiError }) {
  return (
    <div class={`notice ${error.code === "cancelled" ? "calm" : "bad"}`} role="alert">
      <b>{error.message}</b>
      {error.hint !== "" && <span>{error.hint}</span>}
      {error.status === 401 && (
        <a class="button" href={`/login?next=${encodeURIComponent(location.pathname + location.search)}`}>
          Sign in
        </a>
      )}
      {error.status !== 401 && error.code !== "bad_query" && (
        <button type="button" class="button" onClick={refresh}>
          Try again
        </button>
      )}
    </div>
  );
}

export function EmptyNotice({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="notice empty">
      <b>{title}</b>
      {children}
    </div>
  );
}

export function UnreadableSelector({ error, onClear }: { error: ApiError; onClear: () => void }) {
  return (
    <EmptyNotice title="The selector can't be read.">
      <p>{error.message}</p>
      {error.hint !== "" && <p class="dim">{error.hint}</p>}
      <p>
        Examples: <code>{'{service="kubelet"}'}</code> <code>{'{node=~"db-.*",mode="kernel"}'}</code>
      </p>
      <button type="button" class="button" onClick={onClear}>
        Show everything
      </button>
    </EmptyNotice>
  );
}

/** What is on its way since when, and a way to end it; nothing as long as answers come at once. */
export function Progress() {
  const waiting = pending.value;
  const since = waiting.reduce((least, { since }) => Math.min(least, since), Number.POSITIVE_INFINITY);
  const [, tick] = useState(0);
  useEffect(() => {
    if (since === Number.POSITIVE_INFINITY) return;
    const again = () => tick((count) => count + 1);
    const first = setTimeout(again, Math.max(0, since + SLOW_MS - Date.now()) + 1);
    const each = setInterval(again, 1000);
    return () => {
      clearTimeout(first);
      clearInterval(each);
    };
  }, [since]);
  const slow = Date.now() - since >= SLOW_MS;
  return (
    <div class="progress" role="status">
      {slow && <Waiting waiting={waiting} since={since} />}
    </div>
  );
}

function Waiting({ waiting, since }: { waiting: readonly Pending[]; since: number }) {
  return (
    <>
      <i class="spinner" aria-hidden="true" />
      <span class="progress-names">{waiting.map(({ name }) => name).join(", ")}</span>
      <span class="dim" aria-hidden="true">
        {duration(Math.round((Date.now() - since) / 1000))}
      </span>
      <button type="button" class="button tiny" data-testid="cancel" onClick={cancelAll}>
        Cancel
      </button>
    </>
  );
}

export function Busy({ on }: { on: boolean }) {
  return <div class={`busy${on ? " on" : ""}`} role="progressbar" aria-label="Loading" aria-hidden={!on} />;
}
