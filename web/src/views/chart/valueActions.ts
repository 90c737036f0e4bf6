/**
 * What a click on a label's value does: in the chart and its list, in the lists of the largest, in a table by a label.
 */
import { againstRest, type LabelMatcher, withMatcher, withMatchers } from "../../logic/labels/selector.ts";
import type { Mode } from "../../logic/series/stack.ts";
import { navigate, page } from "../../state/address/page.ts";
import { byBehind } from "../../state/answers/advance.ts";
import { range } from "../../state/question/question.ts";

/** Only this value; this value against the rest of what is selected; this value as side A of a comparison. */
export type ValueAction = "only" | "rest" | "base";

export const VALUE_HINT =
  "Click: only this. Right button, or a long press: all that can be done with it. " +
  "Shift and click: compare it with the rest. Alt and click: side A of a comparison.";

export function actionOf({ shiftKey, altKey }: Pick<MouseEvent, "shiftKey" | "altKey">): ValueAction {
  return altKey ? "base" : shiftKey ? "rest" : "only";
}

/** Of a key with Alt, browsers make no click. */
export function onAltEnter(event: KeyboardEvent, act: (action: ValueAction) => void): void {
  if (event.key !== "Enter" || !event.altKey) return;
  event.preventDefault();
  act("base");
}

/**
 * `within`: other values that this one is looked at in. With a mode, of the value's time in the kernel or in user
 * mode; the rest is then that of the other values.
 */
export function actOnValue(
  label: string,
  value: string,
  action: ValueAction,
  mode: Mode | null = null,
  within: readonly LabelMatcher[] = [],
): void {
  const { view, baseQuery: ofBase, query: ofPage } = page.value;
  const query = withMatchers(ofPage, within);
  const baseQuery = ofBase === "" ? "" : withMatchers(ofBase, within);
  const inMode = (text: string) =>
    mode === null ? text : withMatcher(text, { label: "mode", operator: "=", value: mode });
  if (action === "base") {
    const ofA = inMode(withMatcher(baseQuery || query, { label, operator: "=", value }));
    if (view === "compare") navigate({ baseQuery: ofA, focus: "" });
    else compareSelectors(query, ofA);
    return;
  }
  const sides = againstRest(query, label, value);
  if (action === "only") {
    const wanted = inMode(sides.query);
    // Of a comparison the windows and side A's selector stay: it is looked at closer, and is no other one.
    navigate({ query: wanted, focus: "", row: "", by: byBehind(label, wanted) });
  } else compareSelectors(inMode(sides.query), inMode(sides.baseQuery));
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

/** Narrows the selector to all but a value. No selector is all but a value's time in one mode. */
export function withoutValue(label: string, value: string): void {
  navigate({ query: withMatcher(page.value.query, { label, operator: "!=", value }), focus: "" });
}
