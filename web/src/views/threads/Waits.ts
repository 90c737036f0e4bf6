/** What stands beside graphs of waits, in one file. */
import { wokenBy } from "../../state/moments/wokenBy.ts";
import { startWaitKinds } from "../../state/waits/chips.ts";

export { WaitChips } from "./WaitChips.tsx";
export { Woken } from "./Woken.tsx";
export { WokenTool } from "./WokenTool.tsx";

export function start(): void {
  startWaitKinds();
  wokenBy.start();
}
