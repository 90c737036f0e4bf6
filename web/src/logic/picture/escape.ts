/** Text of others as a part of a file. In: any text. Out: text that no reader of the file takes for markup or code. */
import { plainLine } from "../text/plain.ts";

const NAMED: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** For HTML, SVG and attributes of both: characters that XML forbids are told by their names. */
export function escaped(text: string, most = 2_000): string {
  return plainLine(text, most).replace(/[&<>"']/g, (c) => NAMED[c] as string);
}

/** JSON that may stand in a script element: nothing in it ends the element or begins another one. */
export function scriptJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
