/** The search of a graph: what is looked for, what of it there is, and the way from match to match. */
import { useRef } from "preact/hooks";
import { bothText } from "../../logic/compare/sideNames.ts";
import { nextHit, patternName } from "../../logic/flame/search.ts";
import { percent, plural } from "../../logic/text/format.ts";
import { ROOT } from "../../logic/tree/tree.ts";
import { fields, navigate, page } from "../../state/address/page.ts";
import { sideNames } from "../../state/answers/compare.ts";
import { matching, searchResult, wholeFound } from "../../state/screen/search.ts";
import { select, selected } from "../../state/screen/selection.ts";
import { focus, isTreeStale, tree } from "../../state/screen/tree.ts";
import { bothInWords, inWords } from "../../state/screen/units.ts";
import { isTyping, usePageKeys } from "../ui/hooks.ts";

export function SearchBox() {
  const { match } = page.value;
  const input = useRef<HTMLInputElement>(null);
  usePageKeys((event) => {
    if (event.key !== "/" || isTyping(event.target) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    input.current?.focus();
    input.current?.select();
  });
  const wanted = matching.value;
  const fault = wanted !== null && "error" in wanted ? wanted.error : "";
  return (
    <div class={`search${fault === "" ? "" : " bad"}`}>
      <input
        ref={input}
        type="search"
        placeholder="Find a function or /regex/"
        aria-label="Find functions"
        aria-invalid={fault !== ""}
        title={fault || "Press / to come here. Text matches anywhere; /…/ is a regular expression."}
        spellcheck={false}
        value={match}
        data-testid="search"
        onInput={({ currentTarget: { value } }) => {
          // What is pasted is whole: it need not wait for the next letter.
          navigate({ match: value }, Math.abs(value.length - match.length) > 2 ? "" : "search");
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") toMatch(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") navigate({ match: "" });
        }}
      />
      {fault !== "" && (
        <span class="search-fault" role="alert">
          {fault}
        </span>
      )}
    </div>
  );
}

/** `isAll`: all of the selection was searched, if nothing is done to the graph. */
function noneText(isAll: boolean): string {
  const { match, transform } = page.value;
  const name = patternName(match);
  // A function that was chosen by its name may have run elsewhere, or at another time.
  if (name !== match) return isAll && transform === "" ? `not in this selection: ${name}` : "no frame is called so";
  return `no frame matches${/[|*^$]/.test(match) ? ": /…/ is a regular expression" : ""}`;
}

function toMatch(direction: 1 | -1): void {
  const shown = tree.value.tree;
  const found = searchResult.value;
  if (shown === null || found === null) return;
  const next = nextHit(shown, found.hits, selected.value ?? focus.value.node, direction);
  if (next === null) return;
  const within = next >= focus.value.node && next < (shown.end[focus.value.node] as number);
  select(next, within ? {} : { focus: "" });
}

export function SearchFigures() {
  const found = searchResult.value;
  const shown = tree.value.tree;
  if (found === null || shown === null) return null;
  const atRoot = focus.value.node === ROOT;
  // The server has searched what was too small to be sent.
  const whole = shown.trimmed && atRoot ? wholeFound.value : null;
  const samples = whole?.samples ?? found.samples;
  const share = whole?.share ?? found.afterShare;
  const both = shown.diff !== null;
  const shares = (before: number, after: number) =>
    both ? bothText(percent(before), percent(after), sideNames.value) : percent(after);
  // A name is searched for, and not one module's function: its namesakes are found with it.
  const isNamed = patternName(fields.match.value) !== fields.match.value && found.frames > 1;
  const isNone = samples === 0 && found.framesInAll === 0;
  return (
    <span class="found" role="status" data-testid="found" aria-busy={isTreeStale.value}>
      {/* Where there is no room for all of it, all is its title: the graph below must not move. */}
      <span
        class="found-text"
        ref={(element) => {
          if (element !== null) element.title = element.textContent ?? "";
        }}
      >
        {isNone ? (
          noneText(!shown.trimmed || whole !== null)
        ) : (
          <>
            <b>{shares(found.baseShare, share)}</b>
            {found.callers !== null ? " of the callees" : atRoot ? "" : " of the zoomed frame"} ·{" "}
            {both ? bothInWords(found.baseSamples, samples) : inWords(samples)} in {plural(found.frames, "frame")}
            {isNamed && " so named, of any module"}
            {found.callers !== null && (
              <>
                {" · "}
                <b>{shares(found.callers.baseShare, found.callers.afterShare)}</b> of the callers
              </>
            )}
          </>
        )}
        {shown.trimmed && whole === null && (
          <span class="dim" title="Frames below a millionth of the window are folded and not searched.">
            {" "}
            (at least)
          </span>
        )}
      </span>
      {!isNone && (
        <>
          <button type="button" class="button tiny" aria-label="Previous match" onClick={() => toMatch(-1)}>
            ‹
          </button>
          <button type="button" class="button tiny" aria-label="Next match" onClick={() => toMatch(1)}>
            ›
          </button>
        </>
      )}
    </span>
  );
}
