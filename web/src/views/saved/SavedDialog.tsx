/** Views that are kept: those with names, which all who view share, and what this browser looked at last. */
import { useEffect, useState } from "preact/hooks";
import type { SavedView } from "../../api/types.ts";
import { differences, freeName } from "../../logic/saved/differs.ts";
import { ago } from "../../logic/text/format.ts";
import { plainLine } from "../../logic/text/plain.ts";
import { linkTo } from "../../state/address/page.ts";
import { clockNow } from "../../state/live.ts";
import { askSaved, forgetRecent, type Kept, recent, removeView, saved, saveView } from "../../state/moments/saved.ts";
import { useDialog } from "../ui/hooks.ts";
import { addressTitle } from "./addressTitle.ts";

const NAME_ROOM = 80;
const VALUE_ROOM = 120;
/** The server takes no longer name, in bytes. */
const MOST_NAME = 200;

interface Conflict {
  name: string;
  theirs: SavedView | null;
  does: "save" | "remove";
}

export function SavedDialog({ onClose }: { onClose: () => void }) {
  const { leave, dialog } = useDialog(onClose);
  const [name, setName] = useState("");
  const [told, setTold] = useState("");
  const [conflict, setConflict] = useState<Conflict | null>(null);
  useEffect(() => void askSaved(), []);
  const shelf = saved.value;
  const views = shelf?.views ?? [];

  const after = (of: string, does: Conflict["does"], done: string) => (outcome: Kept) => {
    const now = outcome.is === "conflict" ? { name: of, theirs: outcome.theirs, does } : null;
    // What became of one view leaves the conflict about another one, and a name that is typed meanwhile.
    setConflict((was) => now ?? (was?.name === of ? null : was));
    setTold(outcome.is === "done" ? done : outcome.is === "refused" ? outcome.why : "");
    if (outcome.is === "done" && does === "save") setName((typed) => (typed.trim() === of ? "" : typed));
  };
  const save = (as: string, tag: string | null) =>
    void saveView(as, tag).then(after(as, "save", `Saved as “${plainLine(as, NAME_ROOM)}”.`));
  const remove = (view: SavedView) =>
    void removeView(view).then(after(view.name, "remove", `Removed “${plainLine(view.name, NAME_ROOM)}”.`));
  const wanted = name.trim();
  return (
    <dialog class="help saved" aria-label="Saved views" {...dialog}>
      <div class="help-body">
        <div class="help-head">
          <h2>Saved views</h2>
          <button type="button" class="button icon" aria-label="Close" onClick={leave}>
            ✕
          </button>
        </div>
        <form
          class="saved-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (wanted !== "") save(wanted, null);
          }}
        >
          <input
            type="text"
            aria-label="Name of this view"
            placeholder="Name of this view"
            maxLength={MOST_NAME}
            value={name}
            data-testid="view-name"
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <button type="submit" class="button primary" disabled={wanted === ""}>
            Save this view
          </button>
          <span class="dim">for all who view this server</span>
        </form>
        <p role="status" data-testid="saved-told">
          {told}
        </p>
        {conflict !== null && (
          <ConflictNotice
            conflict={conflict}
            taken={views.map((view) => view.name)}
            onSave={save}
            onRemove={remove}
            onLeave={() => setConflict(null)}
          />
        )}
        {shelf?.fault && <p class="warn-text">{shelf.fault}</p>}
        <ul class="saved-list" aria-label="Views with names" data-testid="saved-views">
          {views.map((view) => (
            <li key={view.name}>
              <a href={view.address}>
                <b>
                  <bdi>{plainLine(view.name, NAME_ROOM)}</bdi>
                </b>
                <small>
                  <bdi>{addressTitle(view.address)}</bdi>
                </small>
              </a>
              <span class="dim">{ago(view.changed, clockNow.value)}</span>
              <button
                type="button"
                class="button"
                aria-label={`Replace ${plainLine(view.name, NAME_ROOM)} by this view`}
                onClick={() => save(view.name, view.tag)}
              >
                Replace
              </button>
              <button
                type="button"
                class="button"
                aria-label={`Remove ${plainLine(view.name, NAME_ROOM)}`}
                onClick={() => remove(view)}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
        {shelf !== null && views.length === 0 && shelf.fault === "" && <p class="dim">None has a name yet.</p>}
        <div class="help-head">
          <h2>Looked at last, in this browser</h2>
          {recent().length > 0 && (
            <button type="button" class="button" onClick={forgetRecent}>
              Clear
            </button>
          )}
        </div>
        <ul class="saved-list" aria-label="Looked at last" data-testid="recent-views">
          {recent().map(({ address, at }) => (
            <li key={address}>
              <a href={address}>
                <bdi>{addressTitle(address)}</bdi>
              </a>
              <span class="dim">{ago(at, clockNow.value)}</span>
            </li>
          ))}
        </ul>
        {recent().length === 0 && <p class="dim">Nothing.</p>}
      </div>
    </dialog>
  );
}

interface ConflictProps {
  conflict: Conflict;
  taken: readonly string[];
  onSave: (name: string, tag: string | null) => void;
  onRemove: (view: SavedView) => void;
  onLeave: () => void;
}

/** Somebody else changed it meanwhile: what there is now beside what would be kept, and what to do. */
function ConflictNotice({ conflict, taken, onSave, onRemove, onLeave }: ConflictProps) {
  const { name, theirs, does } = conflict;
  const mine = linkTo({});
  const rows = theirs === null ? [] : differences(theirs.address, mine);
  const shown = (text: string | null) => (text === null ? "–" : plainLine(text, VALUE_ROOM));
  const copy = freeName(name, taken);
  return (
    <section class="notice bad saved-conflict" role="alert" aria-label="Conflict" data-testid="conflict">
      <b>
        {theirs === null
          ? `“${plainLine(name, NAME_ROOM)}” was removed meanwhile.`
          : `There is another “${plainLine(name, NAME_ROOM)}”, changed ${ago(theirs.changed, clockNow.value)} ` +
            "(the server does not know by whom)."}
      </b>
      {theirs !== null && does === "save" && rows.length === 0 && <span>It is the same view.</span>}
      {theirs !== null && does === "save" && rows.length > 0 && (
        <table>
          <thead>
            <tr>
              <td />
              <th scope="col">there</th>
              <th scope="col">this view</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.name}>
                <th scope="row">{plainLine(row.name, NAME_ROOM)}</th>
                <td>
                  <bdi>{shown(row.theirs)}</bdi>
                </td>
                <td>
                  <bdi>{shown(row.mine)}</bdi>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {theirs !== null && does === "remove" && (
        <span>
          It is now: <bdi>{addressTitle(theirs.address)}</bdi>
        </span>
      )}
      <div class="saved-form">
        {does === "save" && (
          <button type="button" class="button" onClick={() => onSave(name, theirs?.tag ?? null)}>
            {theirs === null ? "Save it anew" : "Replace it by this view"}
          </button>
        )}
        {does === "save" && theirs !== null && (
          <button type="button" class="button" onClick={() => onSave(copy, null)}>
            Keep both, as “{plainLine(copy, NAME_ROOM)}”
          </button>
        )}
        {does === "remove" && theirs !== null && (
          <button type="button" class="button" onClick={() => onRemove(theirs)}>
            Remove it all the same
          </button>
        )}
        {theirs !== null && (
          <a class="button" href={theirs.address} target="_blank" rel="noopener">
            Look at it
          </a>
        )}
        <button type="button" class="button" onClick={onLeave}>
          Leave it as it is
        </button>
      </div>
    </section>
  );
}
