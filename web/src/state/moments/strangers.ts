/**
 * What of an address the page does not understand. In: the search part of the address. Out: its parameters as they
 * stand there, each with why where the name is known. Fetched when a page is opened by a link: the first picture does
 * not wait for it.
 */
import { FLEET_KEYS } from "../../logic/agents/fleet.ts";
import { COLUMN_MS, parseMark } from "../../logic/heatmap/marks.ts";
import { isRowsText } from "../../logic/labels/rows.ts";
import { DIFF_SORT_KEYS } from "../../logic/table/diffRows.ts";
import { FUNCTION_SORT_KEYS } from "../../logic/table/functionRows.ts";
import { RANK_KEYS } from "../../logic/table/rankRows.ts";
import { parseSpan } from "../../logic/time/spans.ts";
import { parseTime } from "../../logic/time/time.ts";
import { transformsOf } from "../../logic/transform/list.ts";
import { splitPath } from "../../logic/tree/focus.ts";
import { TIME_SORT_KEYS } from "../../logic/waits/threadTime.ts";
import { FOLDS } from "../address/page.ts";
import { CHOICES, DEFAULTS, type PageState } from "../address/url.ts";
import { LABEL_ORDER } from "../answers/compare.ts";
import { MOST_MOMENTS } from "../question/question.ts";

const TABS = ["frame", "functions", "causes", "spent", "changed", "lists"];
const SORTS: readonly string[] = [
  ...FUNCTION_SORT_KEYS,
  ...RANK_KEYS,
  ...DIFF_SORT_KEYS,
  ...FLEET_KEYS,
  ...TIME_SORT_KEYS,
];
const MILLION = 1_000_000;
const MOST_WAIT_MS = 400 * 86_400_000;

const isTime = (text: string) => parseTime(text, 0) !== null;
const isSpan = (text: string) => parseSpan(text) !== null;
const isMark = (text: string) => parseMark(text) !== null;
const isWhole = (text: string, most: number) => /^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= most;

/** Of parameters that take free text: what of it says something. Names, and what the server reads, are any text. */
const READS: { [K in keyof PageState]?: (text: string) => boolean } = {
  from: isTime,
  until: isTime,
  baseFrom: isTime,
  baseUntil: isTime,
  chartFrom: isTime,
  chartUntil: isTime,
  zoom: isSpan,
  markA: isMark,
  markB: isMark,
  part: (text) => (parseSpan(text)?.until ?? Number.POSITIVE_INFINITY) <= MILLION,
  wait: (text) => /^\d+(\.\d+)?-\d*$/.test(text),
  box: (text) => /^\d+(\.\d+)?-\d+$/.test(text),
  open: (text) => /^(-|[\w.]+)$/.test(text),
  column: (text) => COLUMN_MS.some((ms) => String(ms / 1000) === text),
  before: (text) => isWhole(text, MILLION),
  least: (text) => isWhole(text, MILLION),
  most: (text) => isWhole(text, MOST_WAIT_MS),
  row: (text) => text.startsWith("="),
  limit: (text) => isWhole(text, MOST_MOMENTS),
  tab: (text) => [...TABS, ...LABEL_ORDER].includes(text),
  sort: (text) => SORTS.includes(text.replace(/^-/, "")),
  group: isRowsText,
  more: (text) => text.split(",").every((one) => (FOLDS as readonly string[]).includes(one)),
  transform: (text) => splitPath(text).length === transformsOf(text).length,
};

function isUnderstood(key: keyof PageState, value: string): boolean {
  if (value === "") return true;
  if (typeof DEFAULTS[key] === "boolean") return value === "0" || value === "1";
  if (CHOICES[key] !== undefined) return (CHOICES[key] as readonly string[]).includes(value);
  return READS[key]?.(value) ?? true;
}

/** Names of no meaning, and values that are none. */
export function strangersIn(search: string): string[] {
  return [...new URLSearchParams(search)]
    .filter(([name, value]) => !Object.hasOwn(DEFAULTS, name) || !isUnderstood(name as keyof PageState, value))
    .map(([name, value]) => `${name}=${value}`);
}

const ROWS_OF_NONE = ["", "none", "auto"];

/** What is understood and holds in another view alone, in words. */
export function idleIn({ view, group }: Pick<PageState, "view" | "group">): string {
  return view === "timeline" && !ROWS_OF_NONE.includes(group) ? `Preceding samples have no rows (group=${group}).` : "";
}

const MOST_TOLD = 300;

/** One sentence for the page; empty where all is understood. */
export function strangersText(search: string, state: Pick<PageState, "view" | "group">): string {
  const strange = strangersIn(search).join(", ");
  const told = strange.length > MOST_TOLD ? `${strange.slice(0, MOST_TOLD)}…` : strange;
  const unread = told === "" ? "" : `Not understood in the address: ${told}. All else is shown, and nothing is lost.`;
  return [unread, idleIn(state)].filter((one) => one !== "").join(" ");
}
