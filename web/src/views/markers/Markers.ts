/** Markers of moments: fetched beside the first chart. */
import { markers } from "../../state/moments/markers.ts";

export { MarkerLane } from "./MarkerLane.tsx";
export { MarkersMenu } from "./MarkersMenu.tsx";
export { SaidNote } from "./SaidNote.tsx";

export function start(): void {
  markers.start();
}
