/** One box for all: type to find a view, a value, a function or an action; arrows choose, Enter does it. */
import { useEffect, useId, useState } from "preact/hooks";
import { placeOfRow, type RowPlace } from "../../logic/table/rows.ts";
import { ranked } from "../../logic/text/palette.ts";
import { askSaved } from "../../state/moments/saved.ts";
import { useDialog } from "../ui/hooks.ts";
import { type Action, fixedItems, foundItems, functionItems, LEAST_WORD, savedItems } from "./items.ts";

const MOST = 40;
const NOTHING = { of: "", values: [], functions: [] };
const keyOf = ({ kind, title }: Action) => `${kind} ${title}`;
const MOVES: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };

export function Palette({ onClose }: { onClose: () => void }) {
  const id = useId();
  const { leave, dialog } = useDialog(onClose);
  const [text, setText] = useState("");
  /** What arrows have come to; until then it is the first. */
  const [picked, setPicked] = useState<RowPlace | null>(null);
  const [found, setFound] = useState<{ of: string; values: Action[]; functions: string[] }>(NOTHING);
  useEffect(() => void askSaved(), []);

  const word = text.trim();
  useEffect(() => {
    if (word.length < LEAST_WORD) return;
    const mine = new AbortController();
    void foundItems(word, mine.signal).then((items) => {
      if (!mine.signal.aborted) setFound({ of: word, ...items });
    });
    return () => mine.abort();
  }, [word]);
  const known = found.of === word ? found : NOTHING;
  const functions = word.length < LEAST_WORD ? [] : functionItems(word, known.functions);
  const fixed = ranked([...fixedItems(), ...savedItems()], text, MOST);
  const items = [...fixed, ...known.values, ...functions].slice(0, MOST);
  // Values and views that come with an answer stand before what was picked, which stays picked.
  const at = placeOfRow(items, keyOf, picked);
  useEffect(() => document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" }), [at, text]);

  const take = (item: Action | undefined) => {
    if (item === undefined) return;
    leave();
    item.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = MOVES[event.key];
    if (by !== undefined) {
      const next = Math.min(Math.max(at + by, 0), items.length - 1);
      const item = items[next];
      setPicked(item === undefined ? null : { at: next, key: keyOf(item) });
    } else if (event.key === "Enter") take(items[at]);
    else return;
    event.preventDefault();
  };
  const isLooking = word.length >= LEAST_WORD && found.of !== word;
  return (
    <dialog class="palette" aria-label="Go to" {...dialog}>
      <input
        type="text"
        role="combobox"
        aria-label="View, value, function or action"
        aria-expanded={true}
        aria-controls={`${id}-list`}
        aria-activedescendant={items.length > 0 ? `${id}-${at}` : undefined}
        placeholder="A view, value, function or action"
        autoComplete="off"
        spellcheck={false}
        value={text}
        data-testid="palette"
        onInput={(event) => {
          setText(event.currentTarget.value);
          setPicked(null);
        }}
        onKeyDown={onKeyDown}
      />
      <div class="palette-list" id={`${id}-list`} role="listbox" aria-label="Choices">
        {items.map((item, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field keeps the focus and takes the keys.
          <div
            key={keyOf(item)}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            tabIndex={-1}
            class={i === at ? "picked" : ""}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => take(item)}
          >
            <bdi>{item.title}</bdi> <span class="dim">{item.kind}</span>
          </div>
        ))}
      </div>
      <p class="dim" role="status">
        {isLooking
          ? "Looking for values and functions …"
          : items.length === 0
            ? `Nothing is called “${word}”: no view, no action, no value and no function in this time.`
            : ""}
      </p>
    </dialog>
  );
}
