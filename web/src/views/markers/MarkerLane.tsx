/**
 * Markers on a time axis: a small sign at each moment, one for many where they are dense. A sign opens to what it
 * stands for. It is one stop of Tab; arrows go from sign to sign.
 */
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { groupMarkers, kindsText, type MarkerGroup } from "../../logic/series/markers.ts";
import { count, plural } from "../../logic/text/format.ts";
import { rangeText, type Window } from "../../logic/time/time.ts";
import { page } from "../../state/address/page.ts";
import { markers, NO_MARKERS, NONE_OLDER } from "../../state/moments/markers.ts";
import { present } from "../../state/question/question.ts";
import { useDismiss, useKeptFocus, useSize } from "../ui/hooks.ts";
import { KIND_MARKS, MarkerItem, markerKey, markerLine } from "./MarkerItem.tsx";
import { ZoomToTime } from "./ZoomToTime.tsx";

/** CSS pixels that a sign takes. */
const SIGN = 24;
const MOST_TOLD = 50;
const EDGE = 8;
/** What a group's sign shows is the kind that says most. */
const RANK = ["version", "note", "burst", "agent"] as const;

const MOVES: Record<string, (at: number, last: number) => number> = {
  ArrowRight: (at, last) => Math.min(at + 1, last),
  ArrowLeft: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
};

/** What a sign of several shows. */
const numberText = (number: number) => (number > 99 ? "99+" : count(number));

/** A name contains what is shown, so that who speaks to the machine can say it. */
const signName = (group: MarkerGroup) =>
  group.number > 99 ? `${numberText(group.number)}, ${signTitle(group)}` : signTitle(group);

function signTitle(group: MarkerGroup): string {
  const { markers: own, number, counts, older } = group;
  const [first] = own;
  if (number === 1 && first !== undefined) return markerLine(first);
  const which = `${plural(number, "marker")}: ${kindsText(counts)}`;
  return older > 0 || first === undefined
    ? `${which}; ${rangeText(group, present.peek())}`
    : `${which}; first ${markerLine(first)}`;
}

/** By its first moment, which no other one has: where a range follows the present, its place is another each time. */
const keyOf = ({ from, markers: [first] }: MarkerGroup) => `${from} ${first === undefined ? "" : markerKey(first)}`;

export function MarkerLane({ range }: { range: Window }) {
  const lane = useRef<HTMLDivElement>(null);
  const { width } = useSize(lane);
  const answer = page.value.markers ? markers.data.value : null;
  const [told, older] = [answer?.markers ?? NO_MARKERS, answer?.older ?? NONE_OLDER];
  const groups = useMemo(
    () => (width === 0 ? [] : groupMarkers(told, older, range, width, SIGN)),
    [told, older, range, width],
  );
  const [at, setAt] = useState(0);
  const [open, setOpen] = useState<MarkerGroup | null>(null);
  const opener = useRef<HTMLButtonElement | null>(null);
  const close = useCallback(() => {
    const isWithin = root.current?.contains(document.activeElement) ?? false;
    setOpen(null);
    if (isWithin) opener.current?.focus();
  }, []);
  const root = useDismiss(open !== null, close);
  useKeptFocus();
  const stop = Math.min(at, groups.length - 1);
  const onKeyDown = (event: KeyboardEvent) => {
    const move = MOVES[event.key];
    if (move === undefined || !(event.target as HTMLElement).classList.contains("marker")) return;
    event.preventDefault();
    event.stopPropagation();
    // From the sign that has the focus: a newer answer may have put others before it.
    const signs = [...(lane.current?.querySelectorAll<HTMLElement>(".marker") ?? [])];
    const next = move(signs.indexOf(event.target as HTMLElement), groups.length - 1);
    setAt(next);
    signs[next]?.focus();
  };
  return (
    <div class="marker-root" ref={root}>
      <div class="marker-lane" ref={lane} role="group" aria-label="Markers" data-testid="markers" onKeyDown={onKeyDown}>
        {groups.map((group, i) => {
          const { number, counts } = group;
          const kind = RANK.find((one) => counts[one] > 0) ?? "note";
          return (
            <button
              key={keyOf(group)}
              type="button"
              class={`marker ${kind}`}
              style={{ left: `${group.x}px` }}
              tabIndex={i === stop ? 0 : -1}
              aria-haspopup="dialog"
              aria-expanded={open !== null && keyOf(open) === keyOf(group)}
              aria-label={signName(group)}
              title={signTitle(group)}
              onFocus={() => setAt(i)}
              onClick={(event) => {
                opener.current = event.currentTarget;
                setOpen(open !== null && keyOf(open) === keyOf(group) ? null : group);
              }}
            >
              <span aria-hidden="true">{number === 1 ? KIND_MARKS[kind] : numberText(number)}</span>
            </button>
          );
        })}
      </div>
      {open !== null && <Told key={keyOf(open)} group={open} beside={opener} onDone={close} />}
    </div>
  );
}

interface ToldProps {
  group: MarkerGroup;
  beside: { current: HTMLElement | null };
  onDone: () => void;
}

function Told({ group, beside, onDone }: ToldProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const [element, sign] = [box.current, beside.current?.getBoundingClientRect()];
    if (element === null || sign === undefined) return;
    const { width, height } = element.getBoundingClientRect();
    const left = Math.max(EDGE, Math.min(sign.left, innerWidth - width - EDGE));
    const isBelow = innerHeight - sign.bottom - EDGE >= height || innerHeight - sign.bottom >= sign.top;
    const top = isBelow ? sign.bottom : Math.max(EDGE, sign.top - height);
    element.style.maxHeight = `${Math.round((isBelow ? innerHeight - sign.bottom : sign.top) - EDGE)}px`;
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    element.querySelector<HTMLElement>("button, summary")?.focus();
  }, []);
  const newest = group.markers.slice(-MOST_TOLD).reverse();
  return (
    <div class="marker-panel" ref={box} role="dialog" aria-label={signTitle(group)} data-testid="marker-panel">
      <ol>
        {newest.map((marker) => (
          <MarkerItem key={markerKey(marker)} marker={marker} onDone={onDone} />
        ))}
      </ol>
      {group.number > newest.length && (
        <p class="dim">
          {plural(group.number - newest.length, newest.length === 0 ? "marker" : "older marker")} here, not listed.{" "}
          <ZoomToTime time={group} onDone={onDone} otherwise="They are within a second: narrow the selection.">
            Zoom to all {count(group.number)}
          </ZoomToTime>
        </p>
      )}
    </div>
  );
}
