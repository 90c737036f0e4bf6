/** What a table is sorted by, as text for the address: `name`, or `-self` for the most first. */

export interface Sort<Key extends string> {
  key: Key;
  descending: boolean;
}

export function sortText({ key, descending }: Sort<string>): string {
  return `${descending ? "-" : ""}${key}`;
}

/** Back from text; the table's own choice where it has no such column. */
export function sortOf<Key extends string>(text: string, keys: readonly Key[], usual: Sort<Key>): Sort<Key> {
  const descending = text.startsWith("-");
  const key = keys.find((one) => one === (descending ? text.slice(1) : text));
  return key === undefined ? usual : { key, descending };
}
