/**
 * Where a function stands: files of its module, build ids, source lines. In: a frame as a tree shows it. Out: the
 * question to the table `frames` (`server/docs/tables.md`), and its rows put together.
 */
import type { FrameKey } from "./frameKey.ts";

export interface FunctionSource {
  /** The whole path. */
  module: string;
  /** Empty when unknown. */
  buildId: string;
  /** Source files with the lowest and highest line that was met. */
  sources: { file: string; from: number; until: number }[];
}

const MOST_ROWS = 2_000;

const quoted = (text: string) => `'${text.replace(/'/g, "''")}'`;
const day = (moment: number) => quoted(new Date(moment).toISOString().slice(0, 10));

/**
 * The columns are those that `placesOf` reads. A frame without a function's name is shown as its module, in brackets.
 */
export function placesQuery({ name, module, kind }: FrameKey, from: number, until: number): string {
  const isNamed = name !== module && name !== `[${module}]`;
  const where = [
    `day BETWEEN ${day(from)} AND ${day(until)}`,
    `kind = ${quoted(kind)}`,
    `function = ${quoted(isNamed ? name : "")}`,
  ];
  const columns = "module, build_id, file, min(line), max(line)";
  const source = `FROM frames WHERE ${where.join(" AND ")}`;
  return `SELECT ${columns} ${source} GROUP BY module, build_id, file LIMIT ${MOST_ROWS}`;
}

/** Files of the module of this base name, those with a build id first. */
export function placesOf(rows: readonly (readonly unknown[])[], module: string): FunctionSource[] {
  const places = new Map<string, FunctionSource>();
  for (const [path, buildId, file, from, until] of rows) {
    const whole = String(path);
    if (!isOf(whole, module)) continue;
    const key = `${whole} ${String(buildId)}`;
    const place = places.get(key) ?? { module: whole, buildId: String(buildId), sources: [] };
    places.set(key, place);
    if (file !== "") place.sources.push({ file: String(file), from: Number(from), until: Number(until) });
  }
  const list = [...places.values()];
  for (const { sources } of list) sources.sort((a, b) => (a.file < b.file ? -1 : 1));
  return list.sort((a, b) => Number(b.buildId !== "") - Number(a.buildId !== "") || (a.module < b.module ? -1 : 1));
}

/** A module is the end of its path: the file, of some with the folder. */
function isOf(path: string, module: string): boolean {
  const whole = path.replace(/\/+$/, "");
  return whole === module || whole.endsWith(`/${module}`);
}

export function sourceText({ file, from, until }: FunctionSource["sources"][number]): string {
  if (until <= 0) return file;
  return from > 0 && from < until ? `${file}:${from}–${until}` : `${file}:${until}`;
}
