/**
 * Which transforms are done to a tree. In: text of the address. Out: a list in the order in which they are applied; and
 * back. `transform.ts` applies them; the first picture of an address without any does not need that file.
 */
import { escapeName, splitPath } from "../tree/focus.ts";

const NAMED = ["focus", "hide", "collapse", "sandwich"] as const;
const PLAIN = ["merge", "invert"] as const;

export type Transform = { op: (typeof NAMED)[number]; name: string } | { op: (typeof PLAIN)[number]; name: "" };

/** As text for the address: `hide:malloc;merge`. `;` and `\` within a name are escaped by `\`. */
export function transformsText(list: readonly Transform[]): string {
  return list.map(({ op, name }) => (name === "" ? op : `${op}:${escapeName(name)}`)).join(";");
}

/** Back from text; what is not known is left out, so that an old link still opens. */
export function transformsOf(text: string): Transform[] {
  if (text === "") return [];
  return splitPath(text).flatMap((part): Transform[] => {
    const colon = part.indexOf(":");
    const [op, name] = colon < 0 ? [part, ""] : [part.slice(0, colon), part.slice(colon + 1)];
    if (name !== "") return isOneOf(NAMED, op) ? [{ op, name }] : [];
    return isOneOf(PLAIN, op) ? [{ op, name }] : [];
  });
}

function isOneOf<T extends string>(list: readonly T[], text: string): text is T {
  return (list as readonly string[]).includes(text);
}

/** The list with one more; what there can only be one of takes the place of the one before, or ends it. */
export function withTransform(list: readonly Transform[], added: Transform): Transform[] {
  const others = list.filter((one) => one.op !== added.op || (one.op !== "sandwich" && one.name !== added.name));
  if (added.name === "" && others.length < list.length) return others;
  return [...others, added];
}
