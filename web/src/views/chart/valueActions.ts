/**
 * What a click on a label's value does: in the chart and its list, in the lists of the largest, in a table by a label.
 */
import { againstRest, withMatcher } from "../../logic/labels/selector.ts";
import type { Mode } from "../../logic/series/stack.ts";
import { navigate, page } from "../../state/address/page.ts";
import { range } from "../../state/question/question.ts";

/** Only this value; this value against the rest of what is selected; this value as side A of a comparison. */
export type ValueAction = "only" | "rest" | "base";

export const VALUE_HINT =
  "Click: only this. Shift and click: compare it with the rest. Alt and click: side A of a comparison.";

export function actionOf({ shiftKey, altKey }: Pick<MouseEvent, "shiftKey" | "altKey">): ValueAction {
  return altKey ? "base" : shiftKey ? "rest" : "only";
}

/** Of a key with Alt, browsers make no click. */
export function onAltEnter(event: KeyboardEvent, act: (action: ValueAction) => void): void {
  if (event.key !== "Enter" || !event.altKey) return;
  event.preventDefault();
  act("base");
}

/** With a mode, of the value's time in the kernel or in user mode; the rest is then that of the other values. */
export function actOnValue(label: string, value: string, action: ValueAction, mode: Mode | null = null): void {
  const { view, query, baseQuery } = page.value;
  const inMode = (text: string) =>
    mode === null ? text : withMatcher(text, { label: "mode", operator: "=", value: mode });
  if (action === "base") {
    const ofA = inMode(withMatcher(baseQuery || query, { label, operator: "=", value }));
    if (view === "compare") navigate({ baseQuery: ofA, focus: "" });
    else compareSelectors(query, ofA);
    return;
  }
  const sides = againstRest(query, label, value);
  if (action === "only") navigate({ query: inMode(sides.query), focus: "" });
  else compareSelectors(inMode(sides.query), inMode(sides.baseQuery));
}

/** Two selections in the window that is looked at. */
function compareSelectors(query: string, baseQuery: string): void {
  const { from, until } = range.value;
  const [begin, end] = [String(from), String(until)];
  navigate({
    view: "compare",
    query,
    baseQuery,
    from: begin,
    until: end,
    baseFrom: begin,
    baseUntil: end,
    chartFrom: "",
    chartUntil: "",
    focus: "",
    live: false,
  });
}
