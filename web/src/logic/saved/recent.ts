/**
 * The addresses that were looked at last. In: addresses as they come to rest. Out: the newest twenty, each view of a
 * selection and time once, and texts that browsers keep.
 */

export interface Recent {
  address: string;
  /** Unix milliseconds. */
  at: number;
}

export const MOST_RECENT = 20;
/** Longer ones are not kept: twenty of them would fill what a browser gives. */
const LONGEST = 8_000;

/** Parameters that make it another thing to look at; the others are how it is looked at. */
const SUBJECT = ["view", "type", "query", "from", "until", "baseQuery", "baseFrom", "baseUntil", "find", "agent"];

function subjectOf(address: string): string {
  const given = new URLSearchParams(address.replace(/^[^?]*/, ""));
  return JSON.stringify(SUBJECT.map((name) => given.get(name)));
}

/** A path of this very server: what others kept must not lead elsewhere. */
export function isOwn(address: string): boolean {
  return /^\/(?![/\\])/.test(address) && !/[\s\p{Cc}]/u.test(address);
}

/** The newest first. The same subject again takes the place of what was kept of it. */
export function remembered(list: readonly Recent[], address: string, at: number): Recent[] {
  if (address.length > LONGEST) return [...list];
  const subject = subjectOf(address);
  return [{ address, at }, ...list.filter((one) => subjectOf(one.address) !== subject)].slice(0, MOST_RECENT);
}

/** Of a text that a browser kept; what is no such list is none. Only addresses of this page are kept. */
export function recentOf(text: string | null): Recent[] {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(list)) return [];
    return list
      .filter(
        (one): one is Recent => typeof one?.address === "string" && isOwn(one.address) && typeof one.at === "number",
      )
      .slice(0, MOST_RECENT);
  } catch {
    return [];
  }
}
