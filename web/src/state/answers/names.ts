/** Names of the values that are numbers. They are asked for only where the page shows such a label. */
import { api } from "../../api/index.ts";
import { parseSelector } from "../../logic/labels/selector.ts";
import { isNumbered, NUMBERED, type Numbered } from "../../logic/labels/valueNames.ts";
import { fields } from "../address/page.ts";
import { ask, range } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";
import { lists } from "./lists.ts";

const DAY_MS = 86_400_000;

/** Whether the selection, the chart, the table or a list shows values of the label. */
function isShown(label: Numbered): boolean {
  const { view, by, rank, query, tab } = fields;
  if (view.value === "nodes") return false;
  if (parseSelector(query.value)?.some((one) => one.label === label && one.operator === "=")) return true;
  if (view.value === "timeline") return false;
  if (by.value === label || rank.value === label || tab.value === label) return true;
  if (label === "container" && tab.value === "spent") return true;
  if (label !== "container" || view.value !== "explore") return false;
  return lists.data.value?.container?.series?.series.some(({ value }) => value !== "") ?? false;
}

export const valueNames = Object.fromEntries(
  NUMBERED.map((label) => [
    label,
    resource(() => {
      if (!isShown(label)) return null;
      const { from, until } = range.value;
      const days = { from: Math.floor(from / DAY_MS), until: Math.floor(until / DAY_MS) };
      return ask(`names of ${label}`, days, async (signal) => {
        const { namesOf, namesQuery } = await import("../../logic/labels/numberNames.ts");
        return namesOf(label, (await api.sql(namesQuery(label, from, until), signal)).rows);
      });
    }),
  ]),
) as Record<Numbered, Resource<Map<string, string>>>;

/** Names by value; null for a label whose values are names, and until they are known. */
export function namesFor(label: string): ReadonlyMap<string, string> | null {
  return isNumbered(label) ? valueNames[label].data.value : null;
}
