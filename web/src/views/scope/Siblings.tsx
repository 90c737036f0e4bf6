/** The values that a step of the selection can have instead, the largest first. */
import { useEffect } from "preact/hooks";
import { withMatcher } from "../../logic/labels/selector.ts";
import { percent, plural, shareOf } from "../../logic/text/format.ts";
import { rateText } from "../../logic/text/unit.ts";
import { navigate } from "../../state/address/page.ts";
import { byBehind } from "../../state/answers/advance.ts";
import { MOST_SIBLINGS, siblings, wantedSiblings } from "../../state/answers/siblings.ts";
import { charted } from "../../state/screen/units.ts";
import { layerName } from "../chart/LayerList.tsx";

export { startSiblings as start } from "../../state/answers/siblings.ts";

interface SiblingsProps {
  label: string;
  /** What the values are of. */
  query: string;
  chosen: string | null;
  close: () => void;
}

export function Siblings({ label, query, chosen, close }: SiblingsProps) {
  useEffect(() => {
    wantedSiblings.value = { label, query };
    return () => {
      wantedSiblings.value = null;
    };
  }, [label, query]);
  const known = siblings.data.value;
  const isKnown = known !== null && known.wanted.label === label && known.wanted.query === query;
  if (!isKnown) return <p class="dim">{siblings.error.value?.message ?? "…"}</p>;
  const { rows, samples, complete } = known.answer;
  if (rows.every(({ name }) => name === "")) return <p class="dim">Nothing here has a {label}.</p>;
  return (
    <>
      <ul class="menu-list siblings">
        {rows.map(({ name, total, cores, rate }) => (
          <li key={name}>
            <button
              type="button"
              aria-pressed={name === chosen}
              onClick={() => {
                const wanted = withMatcher(query, { label, operator: "=", value: name });
                navigate({ query: wanted, focus: "", by: byBehind(label, wanted) });
                close();
              }}
            >
              <bdi>{layerName(name, 0, label)}</bdi>
              <span class="dim">
                {rateText(cores ?? rate ?? 0, charted.value)}, {percent(shareOf(total, samples))}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {!complete && <p class="dim">The largest {plural(MOST_SIBLINGS, "value")}; type to find others.</p>}
    </>
  );
}
