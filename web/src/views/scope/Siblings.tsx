/** The values that a step of the selection can have instead, the largest first, and any other by a word of it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { withMatcher } from "../../logic/labels/selector.ts";
import { percent, plural, shareOf } from "../../logic/text/format.ts";
import { rateText } from "../../logic/text/unit.ts";
import { navigate } from "../../state/address/page.ts";
import { byBehind } from "../../state/answers/advance.ts";
import { MOST_SIBLINGS, siblings, wantedSiblings } from "../../state/answers/siblings.ts";
import { charted } from "../../state/screen/units.ts";
import { layerName } from "../chart/LayerList.tsx";
import { showValueMenu } from "../chart/ValueButtons.tsx";
import { endsLongPress, longPress, useKeptFocus } from "../ui/hooks.ts";

export { startSiblings as start } from "../../state/answers/siblings.ts";

interface SiblingsProps {
  label: string;
  /** What the values are of. */
  query: string;
  chosen: string | null;
  /** Another value leaves the chart as it is. */
  keepsBelow?: boolean;
  close: () => void;
}

/** Values that an eye finds by itself. */
const FEW = 8;
const MOVES: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

export function Siblings({ label, query, chosen, keepsBelow = false, close }: SiblingsProps) {
  const [text, setText] = useState("");
  const word = text.trim();
  const list = useRef<HTMLUListElement>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    wantedSiblings.value = { label, query, word };
  }, [label, query, word]);
  useEffect(
    () => () => {
      wantedSiblings.value = null;
    },
    [],
  );
  useKeptFocus();
  const newest = siblings.data.value;
  // Values for the letters before stand until those for the next one are there.
  const known = newest?.wanted.label === label && newest.wanted.query === query ? newest : null;
  const rows = known?.answer.rows ?? [];
  const isCurrent = known?.wanted.word === word;
  // The field stays where a word leaves few values.
  const isMany = useRef(false);
  if (known?.wanted.word === "") isMany.current = rows.length > FEW || !known.answer.complete;
  const hasField = isMany.current;
  useEffect(() => {
    // Letters go into it at once, unless the hand is among the values, or elsewhere by now; a touch screen would put
    // its keyboard over them.
    const at = document.activeElement;
    const isHere = at === document.body || (at !== null && field.current?.closest(".menu")?.contains(at) === true);
    const isAmong = at?.closest(".menu-panel") != null;
    if (isHere && !isAmong && !matchMedia("(pointer: coarse)").matches) field.current?.focus();
  }, [hasField]);

  const choose = (name: string) => {
    const wanted = withMatcher(query, { label, operator: "=", value: name });
    navigate({ query: wanted, focus: "", ...(keepsBelow ? {} : { by: byBehind(label, wanted) }) });
    close();
  };
  /** The menu of a value takes the list's place below the step, which has the focus again behind it. */
  const menuOf = (name: string, x: number) => () => {
    const step = list.current?.closest(".menu")?.querySelector("button");
    close();
    if (step) showValueMenu(label, name, step, x);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = MOVES[event.key];
    const first = rows[0];
    const isField = event.target === field.current;
    if (by !== undefined) {
      const stops = [field.current, ...(list.current?.querySelectorAll("button") ?? [])].filter((one) => one !== null);
      const at = stops.indexOf(event.target as HTMLButtonElement) + by;
      stops[Math.min(Math.max(at, 0), stops.length - 1)]?.focus();
    } else if (event.key === "Enter" && isField) {
      if (word !== "" && isCurrent && first !== undefined) choose(first.name);
    } else return;
    event.preventDefault();
  };

  const said = () => {
    const { loading, error } = siblings;
    if (!isCurrent) return loading.value || error.value === null ? "…" : error.value.message;
    if (word === "" && rows.every(({ name }) => name === "")) return `Nothing here has a ${label}.`;
    if (rows.length === 0) return `No ${label} here has “${word}” in its name.`;
    if (known.answer.complete) return "";
    const largest = `The largest ${plural(MOST_SIBLINGS, "value")}`;
    return word === "" ? `${largest}; type to find others.` : `${largest} with “${word}”; type more to find others.`;
  };
  return (
    <>
      {hasField && (
        <input
          ref={field}
          type="search"
          class="siblings-find"
          aria-label={`Find a ${label}`}
          placeholder={`Find a ${label}`}
          autoComplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
      )}
      {rows.some(({ name }) => name !== "") && (
        <ul class="menu-list siblings" ref={list}>
          {rows.map(({ name, total, cores, rate }) => (
            <li key={name}>
              <button
                type="button"
                aria-pressed={name === chosen}
                onKeyDown={onKeyDown}
                onClick={(event) => {
                  if (!endsLongPress(event)) choose(name);
                }}
                onContextMenu={(event) => {
                  event.preventDefault();
                  // Of keys there is no place of the pointer.
                  menuOf(name, event.clientX || event.currentTarget.getBoundingClientRect().left)();
                }}
                {...longPress((event) => menuOf(name, event.clientX))}
              >
                <bdi>{layerName(name, 0, label)}</bdi>
                <span class="dim">
                  {rateText(cores ?? rate ?? 0, charted.value)}
                  {known?.wanted.word === "" && `, ${percent(shareOf(total, known.answer.samples))}`}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <p class="dim" role="status">
        {said()}
      </p>
    </>
  );
}
