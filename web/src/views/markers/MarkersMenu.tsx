/** All markers of the charts' range as a list, and whether they stand on the axes. */
import { useMemo, useState } from "preact/hooks";
import { countsOf, isNarrower, kindsText, numberOf, olderSpans } from "../../logic/series/markers.ts";
import { count, plural } from "../../logic/text/format.ts";
import { rangeText } from "../../logic/time/time.ts";
import { lengthOf } from "../../logic/time/windows.ts";
import { navigate, page } from "../../state/address/page.ts";
import { chartWindow, markers, NO_MARKERS, NONE_OLDER, zoomToTime } from "../../state/moments/markers.ts";
import { present } from "../../state/question/question.ts";
import { Check } from "../ui/Check.tsx";
import { Menu } from "../ui/Menu.tsx";
import { KIND_WORDS, MarkerItem, markerKey } from "./MarkerItem.tsx";

/** So many are listed, and so many more each time that somebody wants more. */
const MOST_LISTED = 100;
/** What one answer of the server tells one by one. */
const MOST_TOLD = 2_000;
const MOST_SPANS = 12;

export function MarkersMenu() {
  const answer = markers.data.value;
  const isShown = page.value.markers;
  const number = numberOf(countsOf(answer?.markers ?? NO_MARKERS, answer?.older ?? NONE_OLDER));
  if (isShown && number === 0 && (answer?.uncounted ?? []).length === 0) return null;
  return (
    <Menu label={isShown ? `Markers (${count(number)}) ▾` : "Markers ▾"} name="Markers" class="markers-menu">
      {(close) => <MarkerList close={close} />}
    </Menu>
  );
}

function MarkerList({ close }: { close: () => void }) {
  const [word, setWord] = useState("");
  const [most, setMost] = useState(MOST_LISTED);
  const answer = markers.data.value;
  const isShown = page.value.markers;
  const found = useMemo(() => {
    const low = word.trim().toLowerCase();
    return (answer?.markers ?? NO_MARKERS)
      .filter(({ title, text, labels }) =>
        [title, text, ...Object.values(labels)].some((one) => one.toLowerCase().includes(low)),
      )
      .sort((a, b) => b.time - a.time);
  }, [answer, word]);
  return (
    <div class="marker-list" data-testid="marker-list">
      <div class="marker-tools">
        <Check checked={isShown} onToggle={() => navigate({ markers: !isShown })} id="show-markers">
          On the time axes
        </Check>
        {isShown && (
          <input
            type="search"
            aria-label="Find a marker"
            placeholder="Find a marker"
            value={word}
            onInput={(event) => setWord(event.currentTarget.value)}
          />
        )}
      </div>
      {isShown && (
        <>
          <p class="dim" role="status">
            {kindsText(countsOf(found, NONE_OLDER)) || "None is like this"}
            {found.length > most ? `; the newest ${count(most)} are listed` : ""}
          </p>
          <Older close={close} isSearched={word.trim() !== ""} />
          <ol>
            {found.slice(0, most).map((marker) => (
              <MarkerItem key={markerKey(marker)} marker={marker} onDone={close} />
            ))}
          </ol>
          {found.length > most && (
            <button type="button" class="button" onClick={() => setMost(most + MOST_LISTED)}>
              List {count(MOST_LISTED)} more
            </button>
          )}
        </>
      )}
    </div>
  );
}

/** What the list has no room for: how many there are, when, and a way there. */
function Older({ close, isSearched }: { close: () => void; isSearched: boolean }) {
  const answer = markers.data.value;
  const [older, uncounted] = [answer?.older ?? NONE_OLDER, answer?.uncounted ?? []];
  const range = chartWindow();
  const longest = lengthOf(range) / 2;
  const spans = useMemo(() => olderSpans(older, MOST_TOLD, MOST_SPANS, longest), [older, longest]);
  return (
    <>
      {spans.length > 0 && (
        <section class="marker-older" aria-label="Older markers" data-testid="older-markers">
          <p class="dim">
            {plural(numberOf(countsOf(NO_MARKERS, older)), "older one")} in this range: counted on the axes, not in this
            list{isSearched ? " and not searched" : ""}. Zoom to a time to see them:
          </p>
          <ul>
            {spans.map((span) => (
              <li key={span.from}>
                {isNarrower(span, range) ? (
                  <button
                    type="button"
                    class="button"
                    onClick={() => {
                      close();
                      zoomToTime(span);
                    }}
                  >
                    {rangeText(span, present.value)}
                  </button>
                ) : (
                  "within a second: narrow the selection"
                )}{" "}
                <span class="dim">{kindsText(span.counts)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {uncounted.map((kind) => (
        <p key={kind} class="dim">
          Of the kind “{KIND_WORDS[kind]}” there are more than can be told apart: narrow the selection, or the time.
        </p>
      ))}
    </>
  );
}
