/** What a palette offers for what is typed. In: items in their order of use. Out: those that match, the best first. */

export interface Item {
  /** What it is: a view, a value, a function, an action. */
  kind: string;
  title: string;
  /** Other words by which it is found. */
  words?: string;
}

/** Each word that is typed stands in the title, the kind or the other words; -1 where one does not. */
function rank({ kind, title, words = "" }: Item, typed: readonly string[]): number {
  const low = title.toLowerCase();
  const all = `${kind} ${low} ${words}`.toLowerCase();
  let sum = 0;
  for (const word of typed) {
    const at = all.indexOf(word);
    if (at < 0) return -1;
    if (low === word) sum += 4;
    else if (low.startsWith(word)) sum += 3;
    else if (new RegExp(`(^|[^a-z0-9])${word.replace(/[^a-z0-9]/g, "\\$&")}`).test(low)) sum += 2;
    else if (low.includes(word)) sum += 1;
  }
  return sum;
}

/** Of equal ones the order stays. */
export function ranked<T extends Item>(items: readonly T[], text: string, most: number): T[] {
  const typed = text.toLowerCase().split(/\s+/).filter(Boolean);
  return items
    .map((item, at) => ({ item, at, rank: rank(item, typed) }))
    .filter((one) => one.rank >= 0)
    .sort((a, b) => b.rank - a.rank || a.at - b.at)
    .slice(0, most)
    .map(({ item }) => item);
}
