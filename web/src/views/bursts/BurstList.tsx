/** Closer looks of all nodes: what became of each, what it gave and took, and the way to its time. */
import type { Burst } from "../../api/types.ts";
import { isUnderWay, shownAt, stateText, subjectText, takenText } from "../../logic/agents/bursts.ts";
import { count } from "../../logic/text/format.ts";
import { plainLine } from "../../logic/text/plain.ts";
import { clock, day } from "../../logic/time/time.ts";
import { navigate, type PageState } from "../../state/address/page.ts";
import { clockNow } from "../../state/live.ts";
import { bursts, endBurst, type Outcome } from "../../state/moments/bursts.ts";
import { Go } from "../ui/Go.tsx";

const MOST_LISTED = 100;
const NAME_ROOM = 80;
const LINE_ROOM = 200;

interface Props {
  onEnded: (outcome: Outcome) => void;
  /** What is shown lies behind the dialog. */
  onShow: () => void;
}

export function BurstList({ onEnded, onShow }: Props) {
  const shelf = bursts.value;
  const all = shelf?.bursts ?? [];
  return (
    <section aria-label="Closer looks">
      <h3>Closer looks so far</h3>
      {shelf?.fault && <p class="warn-text">{shelf.fault.message}</p>}
      {shelf === null && <p class="dim">Waiting for the server …</p>}
      {shelf !== null && all.length === 0 && shelf.fault === null && <p class="dim">None.</p>}
      <ul class="saved-list" data-testid="bursts">
        {all.slice(0, MOST_LISTED).map((burst) => (
          <Item key={burst.id} burst={burst} onEnded={onEnded} onShow={onShow} />
        ))}
      </ul>
      {all.length > MOST_LISTED && <p class="dim">{count(all.length - MOST_LISTED)} older ones are not listed.</p>}
    </section>
  );
}

function Item({ burst, onEnded, onShow }: Props & { burst: Burst }) {
  const now = clockNow.value;
  const node = plainLine(burst.node, NAME_ROOM);
  const at = burst.from_ms ?? burst.created_ms;
  const place = shownAt(burst);
  const taken = takenText(burst);
  return (
    <li data-state={burst.state}>
      <div class="burst-text">
        <b>
          <bdi>{node}</bdi>
        </b>{" "}
        <span class={isUnderWay(burst) ? "burst-going" : ""}>{stateText(burst, now)}</span>
        <small>
          {clock(at)}, {day(at, now)} · <bdi>{plainLine(subjectText(burst), LINE_ROOM)}</bdi>
        </small>
        {taken !== "" && <small>{taken}</small>}
        {burst.reason !== "" && <small class="warn-text">{plainLine(burst.reason, LINE_ROOM)}</small>}
      </div>
      {isUnderWay(burst) && (
        <button
          type="button"
          class="button"
          aria-label={`Cancel the closer look at ${node}`}
          onClick={() => void endBurst(burst).then(onEnded)}
        >
          Cancel
        </button>
      )}
      {place !== null && (
        <>
          <Show change={{ ...PLAIN, ...place, view: "explore" }} name={`Show ${node} at that time`} onShow={onShow}>
            Show
          </Show>
          <Show
            change={{ ...PLAIN, ...place, view: "timeline" }}
            name={`Timeline of ${node} at that time`}
            onShow={onShow}
          >
            Timeline
          </Show>
        </>
      )}
    </li>
  );
}

/** What was chosen before is of another time, and a burst's samples are of CPU time. */
const PLAIN: Partial<PageState> = { type: "cpu", focus: "", frame: "", zoom: "", box: "", live: false };

interface ShowProps {
  change: Partial<PageState>;
  name: string;
  onShow: () => void;
  children: string;
}

function Show({ change, name, onShow, children }: ShowProps) {
  return (
    <Go
      class="button burst-show"
      change={change}
      aria-label={name}
      onGo={() => {
        onShow();
        navigate(change);
      }}
    >
      {children}
    </Go>
  );
}
