/** What stands where an answer should be: an error with what to do, an empty window, something on its way. */
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/index.ts";
import { refresh } from "../state/index.ts";

/** Where no answer is there yet: why there is none, or that it is on its way. */
export function Missing({ error, loading, kind = "" }: { error: ApiError | null; loading: boolean; kind?: string }) {
  if (error !== null) return <ErrorNotice error={error} />;
  return (
    <div class={`card waiting ${kind}`}>
      <Busy on={loading} />
    </div>
  );
}

export function ErrorNotice({ error }: { error: ApiError }) {
  return (
    <div class="notice bad" role="alert">
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

export function Busy({ on }: { on: boolean }) {
  return <div class={`busy${on ? " on" : ""}`} role="progressbar" aria-label="Loading" aria-hidden={!on} />;
}
