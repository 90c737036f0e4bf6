/**
 * Changes between both sides of a comparison as text: what was judged, and what numbers are told in, as `norm.ts` has
 * it. Beside that file, since one window needs none of it.
 */
import { count, shareOf, signed } from "../text/format.ts";
import { SAMPLES } from "../text/unit.ts";
import { asJudged, chosenOf, judgedUnit, normText, normUnit, normWords, type Told } from "./norm.ts";
import { bothText } from "./sideNames.ts";

/** Beyond this part of each other, one of what is judged is not as much on both sides. */
const EQUAL = 0.005;

/**
 * A change with its sign. Where one of what was judged is not the same amount on both sides, as in windows of different
 * lengths, a difference of amounts would be none of levels: then it is told as it was judged, with its unit.
 */
export function changeText(value: number, told: Told): string {
  const judged = signed(asJudged(value, told), value);
  const chosen = chosenOf(told);
  if (chosen === null) return judged;
  const { choice, sums } = chosen;
  const unit = told.unit ?? SAMPLES;
  const [a, b] = sums.map(({ samples, seconds, level, perValue }) => {
    if (choice === "share") return shareOf(perValue, samples);
    if (choice === "cores") return perValue * shareOf(level, samples);
    return choice === "time" && unit.isTime ? perValue * shareOf(seconds ?? 0, samples) : perValue;
  }) as [number, number];
  const isSame = Math.min(a, b) > 0 && Math.abs(a - b) <= EQUAL * Math.max(a, b);
  if (isSame) return signed(normText(value, 1, told), value);
  // A share without the word would read like a part of the other side.
  return `${judged} ${judgedUnit(told)}`;
}

/**
 * `0.05 → 0.62 cores` of one selection at two times, `A 0.593, B 0.155 cores` of anything else: an arrow reads like a
 * change in time. Shares and bytes carry their unit themselves.
 */
export function fromTo(before: number, after: number, told: Told, inTurn = true): string {
  const unit = normUnit(told);
  const levels = bothText(normText(before, 0, told), normText(after, 1, told), { inTurn });
  return unit === "share" || unit === "bytes" ? levels : `${levels} ${normWords(told)}`;
}

/** How often: `3.2×`; `new` and `gone` are told apart by the caller. */
export function factor(before: number, after: number): string {
  if (before <= 0 || after <= 0) return "";
  const ratio = after / before;
  if (ratio < 0.005) return "<0.01×";
  if (ratio >= 999.5) return ">999×";
  return `${ratio >= 100 ? count(ratio) : ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2)}×`;
}
