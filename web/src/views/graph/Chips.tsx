/** What was done to the tree, in its order: each a chip that can be taken away. */
import { count } from "../../logic/text/format.ts";
import { fitName } from "../../logic/text/names.ts";
import type { Transform } from "../../logic/transform/list.ts";
import { titleOf } from "../../logic/tree/rows.ts";
import { ROOT } from "../../logic/tree/tree.ts";
import { navigate } from "../../state/address/page.ts";
import { focus, idleTransforms, transforms, tree, wholeSamples } from "../../state/screen/tree.ts";
import { zoomTo } from "../frame/steps.ts";
import { setTransforms } from "./actions.ts";

const WORDS: Record<Transform["op"], string> = {
  focus: "focus on",
  hide: "without",
  merge: "recursion merged",
  collapse: "collapsed",
  invert: "inverted: leaf first",
  sandwich: "callers and callees of",
};

const NAME_ROOM = 44;

interface ChipProps {
  word: string;
  name: string;
  faint?: boolean;
  hint: string;
  id?: string;
  onRemove: () => void;
}

function Chip({ word, name, faint = false, hint, id = "chip", onRemove }: ChipProps) {
  return (
    <li class={`chip${faint ? " faint" : ""}`} title={hint}>
      <span class="dim">{word}</span> {name !== "" && <b dir="auto">{fitName(name, NAME_ROOM)}</b>}
      <button type="button" data-testid={id} aria-label={`Undo: ${word} ${name}`} onClick={onRemove}>
        ✕
      </button>
    </li>
  );
}

export function Chips() {
  const shown = tree.value.tree;
  const { node } = focus.value;
  const list = transforms.value;
  if (shown === null || (node === ROOT && list.length === 0)) return null;
  const left = shown.total[ROOT] as number;
  const all = wholeSamples.value;
  const idle = idleTransforms.value;
  return (
    <ul class="chips" aria-label="What is done to the graph" data-testid="chips">
      {list.map((one) => {
        const isIdle = idle.includes(one);
        return (
          <Chip
            key={`${one.op} ${one.name}`}
            word={isIdle ? `not here: ${WORDS[one.op]}` : WORDS[one.op]}
            name={one.name}
            faint={isIdle}
            hint={isIdle ? `Nothing in this window has ${one.name}: this changes nothing.` : one.name}
            onRemove={() => setTransforms(list.filter((other) => other !== one))}
          />
        );
      })}
      {node !== ROOT && (
        <Chip
          word="zoomed"
          name={titleOf(shown, node)}
          hint={titleOf(shown, node)}
          id="reset-zoom"
          onRemove={() => navigate({ focus: "" })}
        />
      )}
      {node !== ROOT && (shown.parent[node] as number) !== ROOT && (
        <li>
          <button type="button" class="button tiny" onClick={() => zoomTo(shown.parent[node] as number)}>
            Zoom out one frame
          </button>
        </li>
      )}
      {list.length + Number(node !== ROOT) > 1 && (
        <li>
          <button type="button" class="button tiny" onClick={() => navigate({ transform: "", focus: "" })}>
            undo all
          </button>
        </li>
      )}
      {left !== all && (
        <li class="dim" title="Samples that the transforms leave, of all in the window">
          {count(left)} of {count(all)} samples
        </li>
      )}
    </ul>
  );
}
