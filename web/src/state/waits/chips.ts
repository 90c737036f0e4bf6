/** The classes and states of waits that there are, with their time, whatever of them is left out now. */
import { computed } from "@preact/signals";
import { isWait } from "../../logic/text/unit.ts";
import { CLASS, STATE, withoutWaits } from "../../logic/waits/chips.ts";
import { WOKE } from "../../logic/waits/wakers.ts";
import { fields } from "../address/page.ts";
import { type Facets, facetsBy } from "../answers/facets.ts";
import { ask, range, waitLengths } from "../question/question.ts";
import { type Resource, resource } from "../question/resource.ts";

/** More than agents tell apart. */
const MOST_VALUES = 40;

/** The type whose waits are told apart; none elsewhere. */
const subject = computed(() => {
  const view = fields.view.value;
  if (view === "threads") return "off_cpu";
  // Who woke others has no kinds.
  return isWait(fields.type.value) && fields.type.value !== WOKE && view !== "nodes" && view !== "timeline"
    ? fields.type.value
    : null;
});

export const waitKinds: Resource<Facets> = resource(() => {
  const query = withoutWaits(fields.query.value);
  if (subject.value === null || query === null) return null;
  const labels = subject.value === "off_cpu" ? [CLASS, STATE] : [STATE];
  const parameters = {
    type: subject.value,
    query,
    ...range.value,
    ...waitLengths.value,
    parts: "top",
    limit: MOST_VALUES,
  };
  return ask("kinds of waits", { ...parameters, by: labels.join(",") }, (signal) =>
    facetsBy(labels, parameters, signal),
  );
});

export function startWaitKinds(): void {
  waitKinds.start();
}
