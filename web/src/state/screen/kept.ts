/**
 * What this browser keeps from one visit to the next, beside the address: what a person needs, and not what a link
 * shows. Where the browser keeps nothing, each visit is the first one.
 */

const PREFIX = "stakeout.";

/** Null where nothing was kept. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function keep(name: string, text: string): void {
  try {
    localStorage.setItem(PREFIX + name, text);
  } catch {
    // The browser keeps nothing for this page: nothing is lost but the choice of this visit.
  }
}
