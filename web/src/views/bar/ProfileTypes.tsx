/** The types of samples that there are in the range, asked for when the list is opened. */
import { useEffect } from "preact/hooks";
import { typeHint, typeName } from "../../logic/labels/profileTypes.ts";
import { navigate, page } from "../../state/address/page.ts";
import { types, wantsTypes } from "../../state/answers/server.ts";

export function ProfileTypes({ close }: { close: () => void }) {
  const { type } = page.value;
  useEffect(() => {
    wantsTypes.value = true;
    return () => {
      wantsTypes.value = false;
    };
  }, []);
  const found = types.data.value;
  const offered = [...new Set([...(found ?? []), type])];
  return (
    <>
      <ul class="menu-list" aria-label="Profile types">
        {offered.map((one) => (
          <li key={one}>
            <button
              type="button"
              aria-pressed={one === type}
              onClick={() => {
                navigate({ type: one, focus: "" });
                close();
              }}
            >
              <b>{typeName(one)}</b>
              <small>{typeHint(one)}</small>
            </button>
          </li>
        ))}
      </ul>
      <p class="menu-note dim" role="status" data-testid="types">
        {types.error.value?.message ?? (found === null ? "Looking for others …" : noteOn(found))}
      </p>
    </>
  );
}

function noteOn(found: readonly string[]): string {
  if (found.length === 0) return "No samples of any type in this range.";
  if (found.length > 1) return "All types in this range.";
  return (
    "The only type in this range. Agents tell what waits, too, but for those with --waits off. " +
    "Types of other senders appear here."
  );
}
