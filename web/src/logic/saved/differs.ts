/**
 * What two addresses differ in. In: two addresses of the page. Out: a row for each parameter that is not the same, in
 * the order in which they stand; a name that is free.
 */

export interface Difference {
  name: string;
  /** Null where it has its default. */
  theirs: string | null;
  mine: string | null;
}

const given = (address: string) => new URLSearchParams(address.replace(/^[^?]*/, ""));

export function differences(theirs: string, mine: string): Difference[] {
  const [a, b] = [given(theirs), given(mine)];
  const names = [...new Set([...a.keys(), ...b.keys()])];
  return names
    .map((name) => ({ name, theirs: a.get(name), mine: b.get(name) }))
    .filter((one) => one.theirs !== one.mine);
}

/** `walks 2` beside `walks`. */
export function freeName(name: string, taken: readonly string[]): string {
  const base = name.replace(/ \d+$/, "");
  for (let i = 2; ; i++) if (!taken.includes(`${base} ${i}`)) return `${base} ${i}`;
}
