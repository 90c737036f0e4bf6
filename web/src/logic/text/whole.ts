/** A text of others where it stands whole, however long it is. In: any text. Out: pieces that can each be shown. */
import { plainText } from "./plain.ts";

const MOST_WHOLE = 8_000;

export function wholeText(text: string, most = MOST_WHOLE): string[] {
  return plainText(text, most).match(/[\s\S]{1,500}/gu) ?? [];
}
