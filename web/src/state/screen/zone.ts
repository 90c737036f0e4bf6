/** The zone that times are told in, as the address has it. */
import { followZone } from "../../logic/time/zone.ts";
import { fields } from "../address/page.ts";

export function startZone(): void {
  followZone(() => fields.tz.value);
}
