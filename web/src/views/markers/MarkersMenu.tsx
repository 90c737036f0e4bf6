/** All markers of the charts' range as a list, and whether they stand on the axes. */
import { useMemo, useState } from "preact/hooks";
import { kindsText } from "../../logic/series/markers.ts";
import { count } from "../../logic/text/format.ts";
import { navigate, page } from "../../state/address/page.ts";
import { markers } from "../../state/moments/markers.ts";
import { Check } from "../ui/Check.tsx";
import { Menu } from "../ui/Menu.tsx";
import { MarkerItem } from "./MarkerItem.tsx";

const MOST_LISTED = 100;

export function MarkersMenu() {
  const answer = markers.data.value;
  const isShown = page.value.markers;
  const number = answer?.markers.length ?? 0;
  if (isShown && number === 0) return null;
  return (
    <Menu label={isShown ? `Markers (${count(number)}) ▾` : "Markers ▾"} name="Markers" class="markers-menu">
      {(close) => <MarkerList close={close} />}
    </Menu>
  );
}

function MarkerList({ close }: { close: () => void }) {
  const [word, setWord] = useState("");
  const answer = markers.data.value;
  const isShown = page.value.markers;
  const found = useMemo(() => {
    const low = word.trim().toLowerCase();
    return (answer?.markers ?? [])
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
            {kindsText(found) || "None is like this"}
            {answer?.complete === false ? "; there are more in this range" : ""}
            {found.length > MOST_LISTED ? `; the newest ${MOST_LISTED} are listed` : ""}
          </p>
          <ol>
            {found.slice(0, MOST_LISTED).map((marker) => (
              <MarkerItem key={`${marker.kind} ${marker.id}`} marker={marker} onDone={close} />
            ))}
          </ol>
        </>
      )}
    </div>
  );
}
