/** Sorting in steps: of a million nodes, what changes a tree sorts each row. */
import { STEP, type Steps } from "../tree/slices.ts";

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
