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
