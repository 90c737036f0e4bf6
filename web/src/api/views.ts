/** Addresses of the page with names, which all who view the server share. Beside `index.ts`, since they come later. */
import { ROOT } from "./address.ts";
import { answered, get, taken } from "./index.ts";
import type { SavedView } from "./types.ts";

const viewAddress = (name: string) => `${ROOT}/views/${encodeURIComponent(name)}`;

export const viewsApi = {
  all: (signal: AbortSignal) => get<{ views: SavedView[] }>("/views", {}, signal),
  /** Without a tag a new one; with one it takes the place of what has this tag. */
  keep: (name: string, address: string, tag: string | null, signal: AbortSignal) =>
    answered<SavedView>(
      viewAddress(name),
      {
        method: "PUT",
        headers: { "content-type": "application/json", ...(tag === null ? {} : { "if-match": tag }) },
        body: JSON.stringify({ address }),
      },
      signal,
    ),
  remove: (name: string, tag: string, signal: AbortSignal) =>
    taken(viewAddress(name), { method: "DELETE", headers: { "if-match": tag } }, signal),
};
