/**
 * One answer of the server that follows the state. In: what to ask for (a question and how to ask it), null for nothing
 * now. Out: signals of the newest answer, of its error and of whether a newer one is on its way. A request that a newer
 * one supersedes is aborted; the old answer stays in sight until the new one is there. What is on its way is listed in
 * `pending`.
 */
import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { ApiError } from "../../api/index.ts";

export interface Ask<T> {
  /** What is asked for, in a word. */
  name: string;
  /** What is asked. */
  question: string;
  /** What the question is of, at whatever time. */
  subject?: string;
  /** Counts up where the same question is asked again. */
  turn: number;
  run: (signal: AbortSignal) => Promise<T>;
}

export interface Resource<T> {
  data: ReadonlySignal<T | null>;
  error: ReadonlySignal<ApiError | null>;
  loading: ReadonlySignal<boolean>;
  /** What is in sight answers an earlier question: its figures are not those of what is chosen now. */
  stale: ReadonlySignal<boolean>;
  /** What the answer in sight is of: where it stays the same, so does what hands are at. */
  subject: ReadonlySignal<string>;
  /** Follows the state from now on: it asks once at first, and whenever the question changes. */
  start: () => void;
}

/** A request that is on its way. */
export interface Pending {
  name: string;
  /** Unix milliseconds. */
  since: number;
  /** Ends it; its place then says that it was cancelled, and how to go on. */
  cancel: () => void;
}

/** What takes longer than this is said to be on its way. */
export const SLOW_MS = 300;

const running = signal<readonly Pending[]>([]);

export const pending: ReadonlySignal<readonly Pending[]> = running;

export function cancelAll(): void {
  for (const one of running.peek()) one.cancel();
}

/** Something else than a request is on its way, since when; what is returned ends it. */
export function announce(entry: Pending): () => void {
  running.value = [...running.peek(), entry];
  return () => {
    running.value = running.peek().filter((one) => one !== entry);
  };
}

function cancelled(name: string): ApiError {
  return new ApiError(
    "cancelled",
    `Cancelled: ${name}.`,
    "Try again, or ask for less: a shorter time range or a narrower selector.",
    0,
  );
}

export function resource<T>(ask: () => Ask<T> | null): Resource<T> {
  const data = signal<T | null>(null);
  const error = signal<ApiError | null>(null);
  const loading = signal(false);
  const stale = signal(false);
  const subject = signal("");
  let key: string | null = null;
  let asked: Pick<Ask<T>, "question" | "turn"> | null = null;
  let answered: string | null = null;
  let current: { controller: AbortController; entry: Pending } | null = null;

  const forget = () => {
    const done = current?.entry;
    current = null;
    if (done !== undefined) running.value = running.peek().filter((one) => one !== done);
  };

  const follow = () => {
    const wanted = ask();
    const next = wanted === null ? null : `${wanted.turn} ${wanted.question}`;
    if (next === key) return;
    key = next;
    current?.controller.abort();
    forget();
    // Why another question has no answer is no word on this one. What is asked again, by a clock or a hand, may fail in
    // the same way: until that is known, it stands.
    const [now, last] = [wanted, asked];
    const isAgain = now !== null && last !== null && (now.question === last.question || now.turn !== last.turn);
    if (!isAgain) error.value = null;
    asked = wanted;
    if (wanted === null) {
      loading.value = false;
      stale.value = false;
      return;
    }
    const failed = (reason: ApiError) => {
      error.value = reason;
      // An answer to another question must not stand under an error.
      if (answered !== wanted.question) data.value = null;
      loading.value = false;
      stale.value = false;
    };
    const controller = new AbortController();
    const cancel = () => {
      if (current?.controller !== controller) return;
      controller.abort();
      forget();
      failed(cancelled(wanted.name));
    };
    const mine = { controller, entry: { name: wanted.name, since: Date.now(), cancel } };
    current = mine;
    running.value = [...running.peek(), mine.entry];
    loading.value = true;
    // The same question again, as a live page asks it, keeps what is in sight true.
    stale.value = data.peek() !== null && answered !== wanted.question;
    wanted.run(controller.signal).then(
      (answer) => {
        if (current !== mine) return;
        forget();
        answered = wanted.question;
        subject.value = wanted.subject ?? wanted.question;
        data.value = answer;
        error.value = null;
        loading.value = false;
        stale.value = false;
      },
      (reason: unknown) => {
        if (current !== mine) return;
        forget();
        failed(
          reason instanceof ApiError
            ? reason
            : new ApiError("bad_answer", reason instanceof Error ? reason.message : String(reason), "", 0),
        );
      },
    );
  };
  const start = () => {
    effect(follow);
  };
  return { data, error, loading, stale, subject, start };
}
