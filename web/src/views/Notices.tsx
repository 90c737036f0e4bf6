/** What stands where an answer should be: an error with what to do, an empty window, something on its way. */
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/index.ts";

export function ErrorNotice({ error, onRetry }: { error: ApiError; onRetry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <b>{error.message}</b>
      {error.hint !== "" && <span>{error.hint}</span>}
      {error.status === 401 && (
        <a class="button" href={`/login?next=${encodeURIComponent(location.pathname + location.search)}`}>
          Sign in
        </a>
      )}
      {onRetry !== undefined && error.status !== 401 && error.code !== "bad_query" && (
        <button type="button" class="button" onClick={onRetry}>
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

export function Busy({ on }: { on: boolean }) {
  return <div class={`busy${on ? " on" : ""}`} role="progressbar" aria-label="Loading" aria-hidden={!on} />;
}
