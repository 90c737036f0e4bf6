/** Closer looks: asked for, begun, ended. Beside `index.ts`, since they come later. */
import { ROOT } from "./address.ts";
import { answered, get, told } from "./index.ts";
import type { Burst, BurstRequest } from "./types.ts";

/** A token for bursts is none of the browser's: what the server says of it stands as it is. */
const ofBursts = <T>(path: string, method: string, token: string, body: BurstRequest | null, signal: AbortSignal) =>
  answered<T>(
    `${ROOT}/bursts${path}`,
    {
      method,
      headers: {
        "content-type": "application/json",
        ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
      },
      body: body && JSON.stringify(body),
    },
    signal,
    told,
  );

export const burstsApi = {
  all: (signal: AbortSignal) => get<{ bursts: Burst[] }>("/bursts", {}, signal),
  begin: (request: BurstRequest, token: string, signal: AbortSignal) =>
    ofBursts<{ bursts: Burst[] }>("", "POST", token, request, signal),
  end: (id: string, token: string, signal: AbortSignal) =>
    ofBursts<{ bursts: Burst[] }>(`/${encodeURIComponent(id)}`, "DELETE", token, null, signal),
};
