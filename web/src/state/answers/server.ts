/** What the server says of itself and of what it stores: how agents are installed, labels, profile types. */
import { signal } from "@preact/signals";
import { api } from "../../api/index.ts";
import { typesOf, typesQuery } from "../../logic/labels/profileTypes.ts";
import { ask, range } from "../question/question.ts";
import { resource } from "../question/resource.ts";

export const info = resource(() => ask("info", {}, (signal) => api.info(signal)));

export const labels = resource(() => ask("labels", {}, (signal) => api.labels(signal)));

/** Whether somebody looks at the list of profile types. */
export const wantsTypes = signal(false);

export const types = resource(() => {
  if (!wantsTypes.value) return null;
  const sql = typesQuery(range.value);
  return ask("profile types", { sql }, async (signal) => typesOf((await api.sql(sql, signal)).rows));
});
