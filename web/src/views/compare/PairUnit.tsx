/**
 * What numbers of both sides are told in: first what was judged, which it is where nobody chose. What that is already
 * is offered once.
 */
import { judgedUnit } from "../../logic/compare/norm.ts";
import type { UnitChoice } from "../../logic/text/figure.ts";
import { navigate, page } from "../../state/address/page.ts";
import { counted, rateTitle, told } from "../../state/screen/units.ts";
import { unitWords } from "../graph/Legends.tsx";
import { Choice } from "../ui/Choice.tsx";

export function PairUnit() {
  const judged = judgedUnit(told.value);
  const isOffered = (choice: UnitChoice, title: string) => {
    if (choice === "share") return judged !== "share";
    return judged !== title && (choice !== "time" || counted.value.isTime);
  };
  const all = unitWords().map(([choice, title]) => [choice, choice === "cores" ? rateTitle() : title] as const);
  const offered = all.filter(([choice, title]) => isOffered(choice, title));
  const chosen = page.value.unit;
  return (
    <Choice
      label=""
      name="Unit of numbers"
      title="What numbers of both sides are told in; what differs is judged as it was"
      id="pair-unit"
      value={offered.some(([choice]) => choice === chosen) ? chosen : ""}
      options={[["", judged] as const, ...offered]}
      onChoose={(unit) => navigate({ unit })}
    />
  );
}
