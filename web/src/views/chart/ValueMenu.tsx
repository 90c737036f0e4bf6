/** All that can be done with a label's value. There is one menu, which stands where it was asked for. */
import { useRef } from "preact/hooks";
import { type LabelMatcher, laneOf, parseSelector } from "../../logic/labels/selector.ts";
import { navigate, page } from "../../state/address/page.ts";
import { canLookCloser, LOOKED_AT } from "../../state/moments/closer.ts";
import { compareVersionsOf } from "../../state/moments/said.ts";
import { lookCloser } from "../bar/Help.tsx";
import { type FrameAction, FrameMenu } from "../flame/FrameMenu.tsx";
import { copyText } from "../ui/clipboard.ts";
import { openValue, type Value } from "./ValueButtons.tsx";
import { actOnValue, withoutValue } from "./valueActions.ts";

/** `within`: other values that this one is looked at in; copying is then the graph's own. */
export function valueActions({ label, value, mode }: Value, within: readonly LabelMatcher[] | null = null) {
  const act = (as: Parameters<typeof actOnValue>[2]) => () => actOnValue(label, value, as, mode, within ?? []);
  const isBase = page.value.view === "compare";
  const actions: FrameAction[] = [
    { key: "f", label: "Filter", hint: "Only this", run: act("only") },
    ...(mode === null
      ? [{ key: "x", label: "Exclude", hint: "All but this, wherever it is", run: () => withoutValue(label, value) }]
      : []),
    { key: "r", label: "Compare with the rest", hint: "This against all else in this window", run: act("rest") },
    {
      key: "b",
      label: isBase ? "Make baseline" : "Make baseline of a comparison",
      hint: isBase ? "Side A of the comparison" : "Side A of a comparison; what you choose next is side B",
      run: act("base"),
    },
    ...(/^(service|version|service\.version)$/.test(label)
      ? [
          {
            key: "v",
            label: "Compare versions",
            hint: "The two with most samples in this window, equally long",
            run: () => (label === "service" ? compareVersionsOf(value) : compareVersionsOf(null, [value])),
          },
        ]
      : []),
    { key: "g", label: `Group by ${label}`, hint: "Layers of the chart", run: () => navigate({ by: label }) },
  ];
  if (canLookAt(label, value))
    actions.push({
      key: "l",
      label: "Look closer …",
      hint: "Sample it at a high rate for a while",
      run: () => lookCloser({ ...nodeOf(within ?? []), [label]: value }),
    });
  if (within === null) actions.push({ key: "c", label: "Copy", hint: value, run: () => void copyText(value) });
  return actions;
}

/** Nothing without a name can be looked at, and only nodes whose agents ask for it. */
const canLookAt = (label: string, value: string) =>
  value !== "" && (LOOKED_AT as readonly string[]).includes(label) && canLookCloser(label === "node" ? value : null);

/** The node that the selector leaves, where it leaves one. */
function nodeOf(within: readonly LabelMatcher[]) {
  const { node } = laneOf([...within, ...(parseSelector(page.value.query) ?? [])]);
  return node === "" ? {} : { node };
}

export function ValueMenu() {
  const shown = openValue.value;
  const place = useRef({ top: 0, bottom: 0 });
  if (shown === null) return null;
  const { by, x, value } = shown;
  return (
    <FrameMenu
      key={`${shown.label} ${value}`}
      anchor={() => {
        // What it stands beside may be gone with a newer answer: the menu stays where it was.
        if (by.isConnected) place.current = by.getBoundingClientRect();
        const { top, bottom } = place.current;
        return { x, top, bottom };
      }}
      name={`of ${shown.label} ${value}`}
      actions={valueActions(shown)}
      onClose={(back) => {
        openValue.value = null;
        if (!back) return;
        if (by.isConnected) by.focus();
        else document.querySelector("main")?.focus();
      }}
    />
  );
}
