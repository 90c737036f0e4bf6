/**
 * Values as they are shown: numbers of something with a name, as `logic/labels/numberNames.ts` tells it, others without
 * what says least.
 */
/** Labels whose values are numbers of something that has a name. */
export const NUMBERED = ["tgid", "container"] as const;
export type Numbered = (typeof NUMBERED)[number];

/** What a runtime calls a container; people know the first twelve digits of it. */
const CONTAINER_ID = /([0-9a-f]{12})[0-9a-f]{52}/;
/** Of a cgroup's path people know the end; what leads there is the same for most. */
const LEADING = /^\/.*\//;

export function isNumbered(label: string): label is Numbered {
  return (NUMBERED as readonly string[]).includes(label);
}

/** A label's value as it is shown. */
export function shortValue(value: string): string {
  return value === "" ? "(none)" : value.replace(LEADING, "…/").replace(CONTAINER_ID, "$1");
}

/** The same, with its name where it is only a number. */
export function namedValue(value: string, names: ReadonlyMap<string, string> | null): string {
  return names?.get(value) ?? shortValue(value);
}
