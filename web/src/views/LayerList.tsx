/** The layers of a chart as a list: what they are, how much they take; a click narrows the selector to one. */
import { cores, count, duration, percent } from "../logic/format.ts";
import { withMatcher } from "../logic/selector.ts";
import { type Stack, stepAt } from "../logic/stack.ts";
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

export function layerName(value: string | null, otherCount: number): string {
  return value === null ? `${count(otherCount)} others` : value === "" ? "(none)" : value;
}

/** Narrows the selector to one layer, or to all but it. */
export function onlyLayer(by: string, value: string, operator: "=" | "!="): void {
  navigate({ query: withMatcher(page.value.query, { label: by, operator, value }), focus: "" });
}

export function LayerList({ stack, by, colours, hover, highlighted, otherCount }: Props) {
  const step = hover === null ? -1 : stepAt(stack.edges, hover);
  return (
    <ul class="layers" aria-label={`Cores by ${by}`} data-testid="layers">
      {stack.layers.map((layer, i) => {
        const value = layer.value;
        const name = layerName(value, otherCount);
        const now = step >= 0 ? layer.cores[step] : undefined;
        const figures = (
          <>
            <span class="layer-cores">{now === undefined ? cores(layer.mean) : now === null ? "–" : cores(now)}</span>
            <span class="layer-share">{percent(layer.share)}</span>
          </>
        );
        const title = `${name}: ${count(layer.samples)} samples, ${duration(layer.cpuSeconds)} of CPU time`;
        return (
          <li key={value ?? " others"} title={title} class={i === highlighted ? "highlighted" : ""}>
            <i class="swatch" style={{ background: colours[i] ?? "" }} />
            {value === null ? (
              <span class="layer-name dim">{name}</span>
            ) : (
              <button
                type="button"
                class="layer-name"
                onClick={() => onlyLayer(by, value, "=")}
                aria-label={`Only ${by} ${name}`}
              >
                {name}
              </button>
            )}
            {figures}
            {value !== null && (
              <button
                type="button"
                class="layer-without"
                title={`Without ${name}`}
                aria-label={`Without ${by} ${name}`}
                onClick={() => onlyLayer(by, value, "!=")}
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
