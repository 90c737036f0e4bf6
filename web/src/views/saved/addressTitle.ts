/** An address in a few words, with the times that it holds. */
import { titleOf } from "../../logic/saved/title.ts";
import { dateText } from "../../logic/time/time.ts";

export function addressTitle(address: string): string {
  return titleOf(address, (text) => (/^\d+$/.test(text) ? dateText(Number(text)) : text));
}
