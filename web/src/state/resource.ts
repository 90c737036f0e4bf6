/**
 * One answer of the server that follows the state. In: what to ask for (a question and how to ask it), null for nothing now.
 * Out: signals of the newest answer, of its error and of whether a newer one is on its way. A request that a newer one
 * supersedes is aborted; the old answer stays in sight until the new one is there.
 */
import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { ApiError } from "../api/index.ts";

export interface Ask<T> {
  /** What is asked. */
  question: string;
  /** Counts up where the same question is asked again. */
  turn: number;
  run: (signal: AbortSignal) => Promise<T>;
}

export interface Resource<T> {
  data: ReadonlySignal<T | null>;
  error: ReadonlySignal<ApiError | null>;
  loading: ReadonlySignal<boolean>;
}

export function resource<T>(ask: () => Ask<T> | null): Resource<T> {
  const data = signal<T | null>(null);
  const error = signal<ApiError | null>(null);
  const loading = signal(false);
  let key: string | null = null;
  let answered: string | null = null;
  let running: AbortController | null = null;

  effect(() => {
    const wanted = ask();
    const next = wanted === null ? null : `${wanted.turn} ${wanted.question}`;
    if (next === key) return;
    key = next;
    running?.abort();
    running = null;
    if (wanted === null) {
      loading.value = false;
      return;
    }
    const mine = new AbortController();
    running = mine;
    loading.value = true;
    wanted.run(mine.signal).then(
      (answer) => {
        if (running !== mine) return;
        answered = wanted.question;
        data.value = answer;
        error.value = null;
        loading.value = false;
      },
      (reason: unknown) => {
        if (running !== mine) return;
        error.value =
          reason instanceof ApiError
            ? reason
            : new ApiError("bad_answer", reason instanceof Error ? reason.message : String(reason), "", 0);
        // An answer to another question must not stand under an error.
        if (answered !== wanted.question) data.value = null;
        loading.value = false;
      },
    );
  });
  return { data, error, loading };
}
