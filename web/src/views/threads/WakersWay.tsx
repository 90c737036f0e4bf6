/** The way from waits to those who ended them, and back: the same selection in the other's labels. */
import { labelBehind, type Translated, toWaits, toWakers, WAITED, WOKE, wayText } from "../../logic/waits/wakers.ts";
import { navigate, page } from "../../state/address/page.ts";

export function WakersWay() {
  const { type, query, baseQuery, by } = page.value;
  const isWoke = type === WOKE;
  if (!isWoke && type !== WAITED) return null;
  const translate: (query: string) => Translated | null = isWoke ? toWaits : toWakers;
  const [way, ofBase] = [translate(query), translate(baseQuery)];
  if (way === null || ofBase === null) return null;
  const title = wayText(
    isWoke
      ? "The waits of the threads that were woken"
      : "The threads that woke these, by the time that the waits took",
    [...new Set([...way.leftOut, ...ofBase.leftOut])],
  );
  return (
    <button
      type="button"
      class="button"
      title={title}
      data-testid="wakers"
      onClick={() =>
        navigate({
          type: isWoke ? WAITED : WOKE,
          query: way.query,
          baseQuery: ofBase.query,
          by: labelBehind(by, isWoke),
          focus: "",
          frame: "",
        })
      }
    >
      {isWoke ? "Back to the waits that were ended" : "Who ended these waits"}
    </button>
  );
}
