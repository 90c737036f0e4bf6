/**
 * A table as text, for a file. In: what is told of each row, by title. Out: a column for each title behind that of the
 * names; what a row is not told of is a dash.
 */

export interface TextTable {
  title: string;
  head: readonly string[];
  rows: readonly (readonly string[])[];
  /** Rows that there are: of more than a file should hold, the first are told. */
  all: number;
}

export interface ToldRow {
  name: string;
  told: readonly (readonly [title: string, text: string])[];
}

export const MOST_ROWS = 20_000;
const NOT_TOLD = "–";

export function textTable(title: string, nameTitle: string, given: readonly ToldRow[], most = MOST_ROWS): TextTable {
  const rows = given.slice(0, most);
  // The row that most is told of has the order: what others lack stands in its place.
  const fullest = rows.reduce<ToldRow["told"]>((best, { told }) => (told.length > best.length ? told : best), []);
  const titles = [...new Set([fullest, ...rows.map(({ told }) => told)].flatMap((told) => told.map(([one]) => one)))];
  return {
    title,
    head: [nameTitle, ...titles],
    rows: rows.map(({ name, told }) => {
      const texts = new Map(told);
      return [name, ...titles.map((one) => texts.get(one)?.replaceAll("\n", "; ") ?? NOT_TOLD)];
    }),
    all: given.length,
  };
}
