/** By what tables of functions and labels are judged and ranked. In: what was chosen. Out: what the server is asked. */
import type { Measured } from "../../api/types.ts";

/**
 * Empty: what the server does by itself. Where nobody chose, functions are by what they take themselves: what callees
 * add would put all their callers first.
 */
export function measureFor(by: string, chosen: Measured | ""): Measured | "" {
  return chosen === "" && by === "function" ? "self" : chosen;
}
