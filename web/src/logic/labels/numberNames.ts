/**
 * What people call values that are numbers: `kubelet (21604)` for a process, `postgres · db-0 · postgres:16.2
 * (a1b2c3d4e5f6)` for a container. In: rows of the server's tables. Out: texts by value; values that nothing more is
 * known of are not among them. It is fetched when such values are shown.
 */
import { type Numbered, shortValue } from "./valueNames.ts";

const MOST_ROWS = 5_000;
const quoted = (text: string) => `'${text.replace(/'/g, "''")}'`;
const day = (moment: number) => quoted(new Date(moment).toISOString().slice(0, 10));

/** Of attributes as a series has them, in JSON: an image's name has no quotes. */
const attribute = (name: string) => `regexp_match(labels, '"${name}":"([^"]+)"')[1]`;
const bounds = (of: string) => `min(${of}), max(${of})`;
const IMAGE = `${bounds(attribute("container[.]image[.]name"))}, ${bounds(attribute("container[.]image[.]tags?"))}`;

/** Asks for a value and texts that name it; lowest and highest, where several may. */
export function namesQuery(label: Numbered, from: number, until: number): string {
  const days = `day BETWEEN ${day(from)} AND ${day(until)}`;
  return label === "tgid"
    ? "SELECT tgid, min(executable), max(executable), min(command_line) FROM processes " +
        `WHERE ${days} GROUP BY tgid LIMIT ${MOST_ROWS}`
    : `SELECT container, ${bounds("service")}, ${bounds("CASE WHEN pod <> '' THEN pod END")}, ` +
        `${IMAGE} FROM series WHERE ${days} AND container <> '' GROUP BY container LIMIT ${MOST_ROWS}`;
}

export function namesOf(label: Numbered, rows: readonly (readonly unknown[])[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const [key, ...cells] of rows) {
    const value = String(key);
    const name = (label === "tgid" ? processName : containerName)(value, cells.map(text));
    if (name !== "") names.set(value, name);
  }
  return names;
}

const text = (cell: unknown) => (cell === null || cell === undefined ? "" : String(cell));
const baseName = (path: string) => path.replace(/\/+$/, "").replace(/^.*\//, "");

const numbered = (name: string, value: string) => (name === "" ? "" : `${name} (${shortValue(value)})`);

/** One number may be of several programs: one that was executed behind another, or on another node. */
function processName(value: string, [first = "", last = "", commandLine = ""]: string[]): string {
  const [a, b] = [baseName(first), baseName(last)];
  if (a !== b && a !== "") return numbered(`${a} … ${b}`, value);
  return numbered(b || baseName(commandLine.split(" ")[0] ?? ""), value);
}

const isDigits = (name: string) => /^[0-9a-f]{12,}$/.test(name);
const onlyOne = (first = "", last = "") => (first === last ? last : "");

/** A container that has a name is called by it, and by what else is known of it. */
function containerName(value: string, cells: string[]): string {
  const [firstService, lastService, firstPod, lastPod, ...image] = cells;
  const isId = isDigits(value) || shortValue(value) !== value;
  // A service that has no other name is called by its container's number.
  const more = [onlyOne(firstService, lastService), onlyOne(firstPod, lastPod), imageName(image)].filter(
    (part) => part !== "" && part !== value && !isDigits(part),
  );
  const name = [...new Set(isId || more.length === 0 ? more : [value, ...more])].join(" · ");
  return isId ? numbered(name, value) : name;
}

/** Without what leads to it and without its digest; with the tag, where there is one of it. */
function imageName([first = "", last = "", firstTag = "", lastTag = ""]: string[]): string {
  const [a, b] = [first, last].map((image) => baseName(image.replace(/@.*$/, ""))) as [string, string];
  const bare = (image: string) => image.replace(/:.*$/, "");
  if (a !== b) return onlyOne(bare(a), bare(b));
  const tag = onlyOne(firstTag, lastTag);
  return b === "" || tag === "" || bare(b) !== b ? b : `${b}:${tag}`;
}
