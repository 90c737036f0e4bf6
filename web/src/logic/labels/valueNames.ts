/**
 * What people call values that are numbers: `kubelet (21604)` for a process, `postgres · db-0 (a1b2c3d4e5f6)` for a
 * container. In: rows of the server's tables. Out: names by value; values without one keep what they are.
 */
/** Labels whose values are numbers of something that has a name. */
export const NUMBERED = ["tgid", "container"] as const;
export type Numbered = (typeof NUMBERED)[number];

/** What a runtime calls a container; people know the first twelve digits of it. */
const CONTAINER_ID = /([0-9a-f]{12})[0-9a-f]{52}/;
/** Of a cgroup's path people know the end; what leads there is the same for most. */
const LEADING = /^\/.*\//;

const MOST_ROWS = 5_000;
const quoted = (text: string) => `'${text.replace(/'/g, "''")}'`;
const day = (moment: number) => quoted(new Date(moment).toISOString().slice(0, 10));

export function isNumbered(label: string): label is Numbered {
  return (NUMBERED as readonly string[]).includes(label);
}

/** Asks for a value and up to three texts that name it; lowest and highest, where several may. */
export function namesQuery(label: Numbered, from: number, until: number): string {
  const days = `day BETWEEN ${day(from)} AND ${day(until)}`;
  return label === "tgid"
    ? "SELECT tgid, min(executable), max(executable), min(command_line) FROM processes " +
        `WHERE ${days} GROUP BY tgid LIMIT ${MOST_ROWS}`
    : "SELECT container, min(service), max(service), max(pod) FROM series " +
        `WHERE ${days} AND container <> '' GROUP BY container LIMIT ${MOST_ROWS}`;
}

export function namesOf(label: Numbered, rows: readonly (readonly unknown[])[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const [value, first, last, more] of rows) {
    const name =
      label === "tgid"
        ? processName(text(first), text(last), text(more))
        : containerName(text(first), text(last), text(more));
    if (name !== "") names.set(String(value), name);
  }
  return names;
}

const text = (cell: unknown) => (cell === null || cell === undefined ? "" : String(cell));
const baseName = (path: string) => path.replace(/\/+$/, "").replace(/^.*\//, "");

/** One number may be of several programs: one that was executed behind another, or on another node. */
function processName(first: string, last: string, commandLine: string): string {
  const [a, b] = [baseName(first), baseName(last)];
  if (a !== b && a !== "") return `${a} … ${b}`;
  return b || baseName(commandLine.split(" ")[0] ?? "");
}

function containerName(first: string, last: string, pod: string): string {
  const service = first === last ? last : "";
  // A service that has no other name is called by its container's number.
  const named = [service, pod].filter((part) => part !== "" && !/^[0-9a-f]{12,}$/.test(part));
  return [...new Set(named)].join(" · ");
}

/** A label's value as it is shown. */
export function shortValue(value: string): string {
  return value === "" ? "(none)" : value.replace(LEADING, "…/").replace(CONTAINER_ID, "$1");
}

/** A label's value as it is shown, with its name where it is only a number. */
export function namedValue(value: string, names: ReadonlyMap<string, string> | null): string {
  const name = names?.get(value);
  return name === undefined ? shortValue(value) : `${name} (${shortValue(value)})`;
}
