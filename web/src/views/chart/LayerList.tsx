/** The layers of a chart as a list: what they are, how much they take; a click narrows the selector to one. */
import { namedValue } from "../../logic/labels/valueNames.ts";
import { type Layer, type Mode, type Stack, stepAt } from "../../logic/series/stack.ts";
import { count, percent, plural } from "../../logic/text/format.ts";
import { amountText, timeText } from "../../logic/text/unit.ts";
import { namesFor } from "../../state/answers/names.ts";
import { charted, layerFigure, level } from "../../state/screen/units.ts";
import { useKeptFocus } from "../ui/hooks.ts";
import { ValueDots, valueHandlers } from "./ValueButtons.tsx";
import { VALUE_HINT } from "./valueActions.ts";

interface Props {
  stack: Stack;
  by: string;
  colours: string[];
  hover: number | null;
  /** The layer under the pointer, or -1. */
  highlighted: number;
  otherCount: number;
}

/** A layer's value as it is shown: with the name of a process or container, where `by` has numbers. */
export function layerName(value: string | null, otherCount: number, by = ""): string {
  return value === null ? `Other (${count(otherCount)})` : namedValue(value, namesFor(by));
}

/** The same with the mode, where user and system time are apart. */
export function layerText(value: string | null, otherCount: number, mode: Mode | null, by: string): string {
  return `${layerName(value, otherCount, by)}${modeText(mode)}`;
}

function layerAmount({ samples, amount }: Layer): string {
  const unit = charted.value;
  const { isTime, name } = unit;
  if (!isTime) return amountText(amount, { isTime, name: name.replace(/ per second$/, "") });
  return `${plural(samples, "sample")}, ${timeText(amount / 1e9, unit)}`;
}

function modeText(mode: Mode | null): string {
  return mode === null ? "" : `, ${mode === "kernel" ? "system" : "user"}`;
}

export function LayerList({ stack, by, colours, hover, highlighted, otherCount }: Props) {
  const step = hover === null ? -1 : stepAt(stack.edges, hover);
  useKeptFocus();
  return (
    <ul
      class="layers"
      aria-label={`${charted.value.isWait ? "Threads waiting" : "Cores"} by ${by}`}
      data-testid="layers"
    >
      {stack.layers.map((layer, i) => {
        const value = layer.value;
        const name = layerText(value, otherCount, layer.mode, by);
        const now = step >= 0 ? layer.cores[step] : undefined;
        const figures = (
          <>
            <span class="layer-cores">{now === undefined ? layerFigure(layer) : now === null ? "–" : level(now)}</span>
            <span class="layer-share">{percent(layer.share)}</span>
          </>
        );
        const title = `${value || name}${value ? modeText(layer.mode) : ""}: ${layerAmount(layer)}`;
        return (
          <li key={`${layer.mode}${value ?? " others"}`} title={title} class={i === highlighted ? "highlighted" : ""}>
            <i class="swatch" style={{ background: colours[i] ?? "" }} />
            {value === null ? (
              <span class="layer-name dim">{name}</span>
            ) : (
              <button
                type="button"
                class="layer-name"
                title={`${title}. ${VALUE_HINT}`}
                {...valueHandlers(by, value, layer.mode)}
                aria-label={`Only ${by} ${name}`}
              >
                <span>{layerName(value, otherCount, by)}</span>
                {modeText(layer.mode)}
              </button>
            )}
            {figures}
            {value !== null && <ValueDots label={by} value={value} mode={layer.mode} name={layerName(value, 0, by)} />}
          </li>
        );
      })}
    </ul>
  );
}
