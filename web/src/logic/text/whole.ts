/** A text of others where it stands whole, however long it is. In: any text. Out: pieces that can each be shown. */
import { plainText } from "./plain.ts";

const MOST_WHOLE = 8_000;

export function wholeText(text: string): string[] {
  return plainText(text, MOST_WHOLE).match(/[\s\S]{1,500}/gu) ?? [];
}
