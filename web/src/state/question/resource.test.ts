import { batch, signal } from "@preact/signals";
import { describe, expect, it } from "vitest";
import { ApiError } from "../../api/index.ts";
import { cancelAll, pending, resource } from "./resource.ts";

/** A resource whose answers come when the test says so. */
function asked() {
  const question = signal<string | null>("one");
  const turn = signal(0);
  const calls: { signal: AbortSignal; answer: (text: string) => void; fail: (reason: unknown) => void }[] = [];
  const made = resource(() => {
    if (question.value === null) return null;
    return {
      name: "thing",
      question: question.value,
      turn: turn.value,
      run: (abort: AbortSignal) => new Promise<string>((answer, fail) => calls.push({ signal: abort, answer, fail })),
    };
  });
  made.start();
  const settle = () => new Promise((done) => setTimeout(done));
  return { question, turn, calls, made, settle };
}

describe("a resource", () => {
  it("keeps the old answer in sight until the new one is there, and ends what is superseded", async () => {
    const { question, calls, made, settle } = asked();
    calls[0]?.answer("first");
    await settle();
    question.value = "two";
    expect([made.data.value, made.loading.value, pending.value.length]).toEqual(["first", true, 1]);
    expect(made.stale.value).toBe(true);
    question.value = "three";
    expect(calls[1]?.signal.aborted).toBe(true);
    calls[1]?.answer("too late");
    calls[2]?.answer("third");
    await settle();
    expect([made.data.value, made.loading.value, pending.value.length]).toEqual(["third", false, 0]);
    expect(made.stale.value).toBe(false);
  });

  it("says that an answer is of an earlier question, and not where the same is asked again", async () => {
    const { question, turn, calls, made, settle } = asked();
    expect(made.stale.value).toBe(false);
    calls[0]?.answer("first");
    await settle();
    turn.value++;
    expect([made.loading.value, made.stale.value]).toEqual([true, false]);
    calls[1]?.answer("again");
    await settle();
    question.value = "two";
    expect([made.data.value, made.stale.value]).toEqual(["again", true]);
    // Nothing is asked for now, or what was asked failed: what is in sight is then no answer to anything newer.
    question.value = null;
    expect(made.stale.value).toBe(false);
    question.value = "three";
    expect(made.stale.value).toBe(true);
    calls.at(-1)?.fail(new Error("odd"));
    await settle();
    expect([made.data.value, made.stale.value]).toEqual([null, false]);
  });

  it("that is cancelled says so, and can be asked again", async () => {
    const { turn, calls, made, settle } = asked();
    expect(pending.value.map(({ name }) => name)).toEqual(["thing"]);
    cancelAll();
    expect(calls[0]?.signal.aborted).toBe(true);
    calls[0]?.fail(new DOMException("aborted", "AbortError"));
    await settle();
    expect(made.error.value?.code).toBe("cancelled");
    expect(made.error.value?.hint).not.toBe("");
    expect([made.data.value, made.loading.value, pending.value.length]).toEqual([null, false, 0]);
    turn.value++;
    calls[1]?.answer("again");
    await settle();
    expect([made.data.value, made.error.value]).toEqual(["again", null]);
  });

  it("keeps an answer to the same question under an error, and none to another", async () => {
    const { question, turn, calls, made, settle } = asked();
    calls[0]?.answer("first");
    await settle();
    turn.value++;
    calls[1]?.fail(new ApiError("timeout", "Too slow.", "Ask for less.", 504));
    await settle();
    expect([made.data.value, made.error.value?.code]).toEqual(["first", "timeout"]);
    question.value = "other";
    calls[2]?.fail(new Error("odd"));
    await settle();
    expect([made.data.value, made.error.value?.code]).toEqual([null, "bad_answer"]);
  });

  it("tells of no question why another one had no answer; what a clock asks again may fail again", async () => {
    const { question, turn, calls, made, settle } = asked();
    calls[0]?.fail(new ApiError("bad_query", "Unreadable.", "", 400));
    await settle();
    turn.value++;
    expect(made.error.value?.code).toBe("bad_query");
    calls[1]?.fail(new ApiError("timeout", "Too slow.", "", 504));
    await settle();
    question.value = "two";
    expect([made.error.value, made.loading.value]).toEqual([null, true]);
    calls[2]?.fail(new ApiError("timeout", "Too slow.", "", 504));
    await settle();
    // Of a range that follows the present each turn is another question.
    batch(() => {
      turn.value++;
      question.value = "two, later";
    });
    expect(made.error.value?.code).toBe("timeout");
    calls[3]?.fail(new ApiError("timeout", "Too slow.", "", 504));
    await settle();
    question.value = null;
    expect(made.error.value).toBeNull();
  });

  it("says what its answer is of, and not what is asked", async () => {
    const { question, calls, made, settle } = asked();
    expect(made.subject.value).toBe("");
    calls[0]?.answer("first");
    await settle();
    question.value = "two";
    expect(made.subject.value).toBe("one");
    calls[1]?.answer("second");
    await settle();
    expect(made.subject.value).toBe("two");
  });
});
