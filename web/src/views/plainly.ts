/**
 * Shows what others wrote as what it is. In: every element and text that any view makes. Out: the same, where text and
 * what is told beside it have names for characters that are not seen, and are cut where they are very long. Values,
 * addresses, keys and what is copied are no part of it: they stay as they are.
 */
import { options } from "preact";
import { MOST_TOLD, shownText } from "../logic/text/plain.ts";

/** Attributes that are read, or shown. */
const TOLD = ["title", "aria-label", "aria-valuetext", "placeholder"] as const;

/** An element with its attributes, or a text, which Preact holds in the same place. */
interface Made {
  type: unknown;
  props: string | Record<string, unknown>;
}

/** From now on, for all views: one by one they would be forgotten. */
export function showPlainly(): void {
  options.vnode = (vnode) => {
    const made = vnode as unknown as Made;
    if (typeof made.props === "string") made.props = shownText(made.props);
    else if (typeof made.type === "string")
      for (const name of TOLD) {
        const text = made.props[name];
        if (typeof text === "string") made.props[name] = shownText(text, MOST_TOLD);
      }
  };
}
