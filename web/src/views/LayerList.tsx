/** The layers of a chart as a list: what they are, how much they take; a click narrows the selector to one. */
import { cores, count, duration, percent } from "../logic/format.ts";
import { againstRest, withMatcher } from "../logic/selector.ts";
import { type Mode, type Stack, stepAt } from "../logic/stack.ts";
import { parseTime } from "../logic/time.ts";
import { ordered } from "../logic/windows.ts";
import { present } from "../state/data.ts";
import { navigate, page } from "../state/index.ts";

interface Props {
  stack: Stack;
  by: string;
  colours: string[];
  hover: number | null;
  /** The layer under the pointer, or -1. */
  highlighted: number;
  otherCount: number;
}

export function layerName(value: string | null, otherCount: number, mode: Mode | null = null): string {
  const name = value === null ? `${count(otherCount)} others` : value === "" ? "(none)" : value;
  return mode === null ? name : `${name}, ${mode === "kernel" ? "system" : "user"}`;
}

/** A click on a value narrows to it; with Shift it is compared with the rest of what is selected, in the same window. */
export function takeValue(label: string, value: string, compare: boolean, mode: Mode | null = null): void {
  const { query, from, until } = page.value;
  // Of a value's time in the kernel, or in user mode, the rest is that of the other values.
  const inMode = (text: string) =>
    mode === null ? text : withMatcher(text, { label: "mode", operator: "=", value: mode });
  const sides = againstRest(query, label, value);
  if (!compare) {
    navigate({ query: inMode(sides.query), focus: "" });
    return;
  }
  const now = present.value;
  const window = ordered(parseTime(from, now) ?? now - 3_600_000, parseTime(until, now) ?? now);
  const [begin, end] = [String(window.from), String(window.until)];
  navigate({
    view: "compare",
    query: inMode(sides.query),
    baseQuery: inMode(sides.baseQuery),
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

export const TAKE_HINT = "Click: only this. Shift and click: compare it with the rest.";

/** Narrows the selector to all but a value. No selector is all but a value's time in one mode. */
function withoutValue(by: string, value: string): void {
  navigate({ query: withMatcher(page.value.query, { label: by, operator: "!=", value }), focus: "" });
}

export function LayerList({ stack, by, colours, hover, highlighted, otherCount }: Props) {
  const step = hover === null ? -1 : stepAt(stack.edges, hover);
  return (
    <ul class="layers" aria-label={`Cores by ${by}`} data-testid="layers">
      {stack.layers.map((layer, i) => {
        const value = layer.value;
        const name = layerName(value, otherCount, layer.mode);
        const now = step >= 0 ? layer.cores[step] : undefined;
        const figures = (
          <>
            <span class="layer-cores">{now === undefined ? cores(layer.mean) : now === null ? "–" : cores(now)}</span>
            <span class="layer-share">{percent(layer.share)}</span>
          </>
        );
        const title = `${name}: ${count(layer.samples)} samples, ${duration(layer.cpuSeconds)} of CPU time`;
        return (
          <li key={`${layer.mode}${value ?? " others"}`} title={title} class={i === highlighted ? "highlighted" : ""}>
            <i class="swatch" style={{ background: colours[i] ?? "" }} />
            {value === null ? (
              <span class="layer-name dim">{name}</span>
            ) : (
              <button
                type="button"
                class="layer-name"
                title={`${title}. ${TAKE_HINT}`}
                onClick={(event) => takeValue(by, value, event.shiftKey, layer.mode)}
                aria-label={`Only ${by} ${name}`}
              >
                {name}
              </button>
            )}
            {figures}
            {value !== null && layer.mode !== "kernel" && (
              <button
                type="button"
                class="layer-without"
                title={`Without ${layerName(value, 0)}`}
                aria-label={`Without ${by} ${layerName(value, 0)}`}
                onClick={() => withoutValue(by, value)}
              >
                ≠
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}
