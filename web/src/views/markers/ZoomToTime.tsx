/** A way to see what was only counted: the charts show that time, where it is shorter than what they show now. */
import type { ComponentChildren } from "preact";
import { isNarrower } from "../../logic/series/markers.ts";
import type { Window } from "../../logic/time/time.ts";
import { chartWindow, zoomToTime } from "../../state/moments/markers.ts";

interface Props {
  time: Window;
  /** Called before the charts are. */
  onDone: () => void;
  /** Stands where no time is shorter: the selection has to be narrowed. */
  otherwise: string;
  /** What the button says. */
  children: ComponentChildren;
}

export function ZoomToTime({ time, onDone, otherwise, children }: Props) {
  if (!isNarrower(time, chartWindow())) return otherwise;
  return (
    <button
      type="button"
      class="button"
      onClick={() => {
        onDone();
        zoomToTime(time);
      }}
    >
      {children}
    </button>
  );
}
