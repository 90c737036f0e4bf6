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
  otherCount: number;
}

export function LayerList({ stack, by, colours, hover, otherCount }: Props) {
  const all = stack.layers.reduce((sum, layer) => sum + layer.cpuSeconds, 0);
  const step = hover === null ? -1 : stepAt(stack.edges, hover);
  const covered = stack.total.filter((value) => value !== null).length;
  const mean = (values: (number | null)[]) =>
    covered === 0 ? 0 : values.reduce((sum: number, v) => sum + (v ?? 0), 0) / covered;
  const filter = (value: string, operator: "=" | "!=") =>
    navigate({ query: withMatcher(page.value.query, { label: by, operator, value }), focus: "" });
  return (
    <ul class="layers" aria-label={`Cores by ${by}`} data-testid="layers">
      {stack.layers.map((layer, i) => {
        const value = layer.value;
        const name = value === null ? `${count(otherCount)} others` : value === "" ? "(none)" : value;
        const now = step >= 0 ? layer.cores[step] : undefined;
        const figures = (
          <>
            <span class="layer-cores">
              {now === undefined ? cores(mean(layer.cores)) : now === null ? "–" : cores(now)}
            </span>
            <span class="layer-share">{percent(all > 0 ? layer.cpuSeconds / all : 0)}</span>
          </>
        );
        const title = `${name}: ${count(layer.samples)} samples, ${duration(layer.cpuSeconds)} of CPU time`;
        return (
          <li key={value ?? " others"} title={title}>
            <i class="swatch" style={{ background: colours[i] ?? "" }} />
            {value === null ? (
              <span class="layer-name dim">{name}</span>
            ) : (
              <button
                type="button"
                class="layer-name"
                onClick={() => filter(value, "=")}
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
                onClick={() => filter(value, "!=")}
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
