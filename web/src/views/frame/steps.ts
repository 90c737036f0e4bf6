/** The steps on a graph that a hand takes at once: zoom, show all, find. */
import { exactPattern } from "../../logic/flame/search.ts";
import { focusOf } from "../../logic/tree/focus.ts";
import { navigate, page } from "../../state/address/page.ts";
import { select } from "../../state/screen/selection.ts";
import { tree } from "../../state/screen/tree.ts";

export function zoomTo(node: number): void {
  const shown = tree.value.tree;
  if (shown !== null) select(node, { focus: focusOf(shown, node) }, "");
}

/** Nothing zoomed, nothing selected, the whole width in sight. */
export function showAll(): void {
  navigate({ focus: "", frame: "" });
}

export function findName(name: string): void {
  const text = exactPattern(name);
  navigate({ match: page.value.match === text ? "" : text });
}
