/** One marker: when, what, of which labels, and what can be asked because of it. Its texts are others' words. */
import type { Marker } from "../../api/types.ts";
import { windowsAround } from "../../logic/compare/versions.ts";
import { withMatcher } from "../../logic/labels/selector.ts";
import { momentsBeside } from "../../logic/series/markers.ts";
import { plainLine, plainText } from "../../logic/text/plain.ts";
import { wholeText } from "../../logic/text/whole.ts";
import { clock, day } from "../../logic/time/time.ts";
import { navigate, page } from "../../state/address/page.ts";
import { chartWindow, markers, NO_MARKERS, NONE_OLDER } from "../../state/moments/markers.ts";
import { compareVersionsOf, say } from "../../state/moments/said.ts";
import { compareWindows } from "../../state/moments/versions.ts";
import { present } from "../../state/question/question.ts";

export const KIND_WORDS = { note: "note", version: "version", agent: "agent started", burst: "burst" } as const;
export const KIND_MARKS = { note: "▼", version: "◆", agent: "●", burst: "◎" } as const;

const TITLE_ROOM = 160;
const TEXT_ROOM = 240;
const ALL_TEXT = 20_000;
const VALUE_ROOM = 60;

/** What the server found itself has no id. */
export const markerKey = ({ id, kind, time, title }: Marker) => `${kind} ${id} ${time} ${title}`;

/** `12:04:05 version: shop 15`, in one line. */
export function markerLine({ time, kind, title }: Marker): string {
  return `${clock(time)} ${KIND_WORDS[kind]}: ${plainLine(title, TITLE_ROOM)}`;
}

/** The selection, narrowed to the service that the marker is of. */
function queryOf({ labels }: Marker): string {
  const { query } = page.peek();
  return labels.service === undefined
    ? query
    : withMatcher(query, { label: "service", operator: "=", value: labels.service });
}

/** Other changes of the same service bound the windows: each side is of one version. */
function compareAround(marker: Marker): void {
  const range = chartWindow();
  const answer = markers.data.peek();
  const beside = momentsBeside(marker, answer?.markers ?? NO_MARKERS, answer?.older ?? NONE_OLDER);
  const pair = windowsAround(marker.time, range, beside, present.peek());
  if (pair === null) say("There is less than a second on one side of it: choose a longer range.", true);
  else compareWindows(pair, queryOf(marker), { chart: range });
}

export function MarkerItem({ marker, onDone }: { marker: Marker; onDone: () => void }) {
  const { time, kind, title, text, labels } = marker;
  const { service, version } = labels;
  const act = (run: () => void) => () => {
    onDone();
    run();
  };
  return (
    <li class="marker-item">
      <div>
        <span class={`marker-kind ${kind}`} aria-hidden="true">
          {KIND_MARKS[kind]}
        </span>{" "}
        <b>{clock(time)}</b>{" "}
        <span class="dim">
          {day(time, present.value)}, {KIND_WORDS[kind]}
        </span>
      </div>
      <div class="marker-title">
        <bdi>{plainLine(title, TITLE_ROOM) || "[no title]"}</bdi>
      </div>
      {text !== "" && text.length <= TEXT_ROOM && (
        <p class="marker-text" dir="auto">
          {plainText(text, TEXT_ROOM)}
        </p>
      )}
      {text.length > TEXT_ROOM && (
        <details>
          <summary>
            <bdi>{plainLine(text, TEXT_ROOM)}</bdi>
          </summary>
          <p class="marker-text" dir="auto">
            {wholeText(text, ALL_TEXT)}
          </p>
        </details>
      )}
      <div class="marker-labels">
        {Object.entries(labels).map(([label, value]) => (
          <code key={label}>
            <bdi>
              {plainLine(label, VALUE_ROOM)}={plainLine(value, VALUE_ROOM)}
            </bdi>
          </code>
        ))}
      </div>
      <div class="marker-actions">
        <button type="button" class="button" onClick={act(() => compareAround(marker))}>
          Compare before/after
        </button>
        {(kind === "version" || version !== undefined) && (
          <button
            type="button"
            class="button"
            onClick={act(() => compareVersionsOf(service ?? null, version === undefined ? [] : [version]))}
          >
            Compare versions
          </button>
        )}
        {service !== undefined && (
          <button type="button" class="button" onClick={act(() => navigate({ query: queryOf(marker), focus: "" }))}>
            Filter
          </button>
        )}
      </div>
    </li>
  );
}
