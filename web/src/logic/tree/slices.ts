/**
 * Work that may take long, done in steps: where it yields it may rest, or be given up. In: a generator. Out: what it
 * returns. The work knows no clock; who runs it decides how many steps make a slice of time.
 */
export type Steps<T> = Generator<undefined, T>;

/** In loops over frames: a step is so many, whose work is a few milliseconds. A power of two less one. */
export const STEP = 0x1fff;

export function atOnce<T>(steps: Steps<T>): T {
  let next = steps.next();
  while (!next.done) next = steps.next();
  return next.value;
}

/** Null where it was given up: `rest` says after each step whether to go on, at once or in the next slice. */
export async function inSlices<T>(steps: Steps<T>, rest: () => Promise<boolean> | boolean): Promise<T | null> {
  for (;;) {
    const next = steps.next();
    if (next.done) return next.value;
    const goesOn = rest();
    if (!(goesOn === true || (await goesOn))) return null;
  }
}

/** Sorts in place, and keeps the order of what is equal, as `sort` does; that one does a million in one piece. */
export function* sorting(list: Int32Array, compare: (a: number, b: number) => number): Steps<void> {
  const size = list.length;
  if (size <= STEP) {
    list.sort(compare);
    return;
  }
  let [from, to]: [Int32Array, Int32Array] = [list, new Int32Array(size)];
  for (let begin = 0; begin < size; begin += STEP) {
    from.subarray(begin, begin + STEP).sort(compare);
    yield;
  }
  for (let width = STEP; width < size; width *= 2) {
    for (let at = 0, left = 0, right = 0, middle = 0, end = 0; at < size; at++) {
      if ((at & STEP) === 0) yield;
      if (at === end) {
        left = at;
        right = middle = Math.min(at + width, size);
        end = Math.min(middle + width, size);
      }
      const isLeft = left < middle && (right === end || compare(from[left] as number, from[right] as number) <= 0);
      to[at] = from[isLeft ? left++ : right++] as number;
    }
    [from, to] = [to, from];
  }
  if (from !== list) list.set(from);
}
