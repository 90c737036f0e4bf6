/** All keys of the page, in one place. */
import { useDialog } from "../ui/hooks.ts";

const KEYS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    "Everywhere",
    [
      ["?", "this help"],
      ["Ctrl K", "go to a view, value, function or action, as ⌘ K does"],
      ["/", "find a function"],
      ["Alt ←", "undo"],
      ["Tab, Enter", "through all controls; a menu closes with Esc"],
      ["Ctrl + wheel", "zoom a chart or graph, as ⌘ does; the wheel alone scrolls the page"],
    ],
  ],
  [
    "Selector",
    [
      ["↓ ↑", "suggestions of labels and values"],
      ["Enter", "take one, or ask"],
      ["Esc", "close them, then undo what was typed"],
    ],
  ],
  [
    "Chart",
    [
      ["← →", "move the line; with Shift ten times as far"],
      ["Enter", "begin a window, and end it"],
      ["+ −", "zoom around the line"],
      ["Esc", "give the window up"],
    ],
  ],
  [
    "Markers",
    [
      ["← →", "from one to the next; Home and End to the first and last"],
      ["Enter", "what it stands for; Esc leads back"],
    ],
  ],
  [
    "Lists and layers",
    [
      ["Enter", "only this value"],
      ["Shift Enter", "compare it with the rest"],
      ["Alt Enter", "make it side A of a comparison"],
    ],
  ],
  [
    "Flamegraph",
    [
      ["↑ ↓ ← →", "caller, callee, neighbours"],
      ["Home End", "first and last of the row"],
      ["Enter", "zoom to the frame"],
      ["Backspace", "zoom out one frame"],
      ["+ −", "zoom into the width"],
      ["Shift ← →", "move by a quarter"],
      ["Esc", "show all"],
      ["n N", "next and previous match"],
      ["c", "copy the name"],
      ["f", "find the frame everywhere"],
      ["o", "focus on the function"],
      ["s", "its callers and callees"],
      ["h", "hide it"],
      ["m", "collapse its module"],
      ["b", "preceding samples"],
      ["r i", "merge recursion, invert"],
      ["w", "runtimes' own frames"],
      ["f x r b g", "on a row: filter, exclude, against the rest, baseline, layers of the chart"],
      ["v l", "on a row: compare versions, look closer"],
      ["Shift F10", "all of these as a menu, there also l: open the source"],
    ],
  ],
  [
    "Find",
    [
      ["Enter", "next match; with Shift the previous one"],
      ["Esc", "clear it"],
    ],
  ],
  [
    "Tree of frames",
    [
      ["↑ ↓", "through the frames"],
      ["→ ←", "open and close, to the callee and the caller"],
      ["Enter", "zoom to the frame"],
      ["Esc", "show all"],
    ],
  ],
  [
    "Tables",
    [
      ["↑ ↓", "through the rows, as PgUp, PgDn, Home and End"],
      ["Enter", "take the row"],
    ],
  ],
  [
    "Windows of a comparison",
    [
      ["← →", "move the window or its edge"],
      ["Shift ← →", "ten times as far"],
    ],
  ],
  [
    "Heatmap",
    [
      ["↑ ↓ ← →", "move between cells; PgUp and PgDn by ten columns"],
      ["Shift + arrows", "select a time"],
      ["Enter", "mark it as A"],
      ["Alt Enter", "mark it as B"],
      ["r", "compare with the rest"],
      ["Esc", "clear the marks"],
    ],
  ],
  [
    "Timeline",
    [
      ["← → ↑ ↓", "neighbours of a depth, caller, callee"],
      ["Shift ← →", "move by a quarter"],
      ["+ −", "zoom, down to a millisecond"],
      ["Enter", "fit the frame"],
      ["n N", "next and previous match"],
      ["Esc", "show all"],
    ],
  ],
  [
    "Waits",
    [
      ["← →", "through the waits of a thread"],
      ["↑ ↓", "to another thread"],
      ["Enter", "fit the wait"],
      ["+ −", "zoom"],
      ["Esc", "leave it"],
    ],
  ],
];

export function HelpDialog({ onClose }: { onClose: () => void }) {
  const { leave, dialog } = useDialog(onClose);
  return (
    <dialog class="help" aria-label="Keyboard help" {...dialog}>
      <div class="help-body">
        <div class="help-head">
          <h2>Keys</h2>
          <button type="button" class="button tiny" onClick={leave}>
            Close
          </button>
        </div>
        <div class="help-columns">
          {KEYS.map(([title, keys]) => (
            <section key={title}>
              <h3>{title}</h3>
              <dl>
                {keys.map(([key, what]) => (
                  <div key={key}>
                    <dt>
                      <kbd>{key}</kbd>
                    </dt>
                    <dd>{what}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
      </div>
    </dialog>
  );
}
