/** Shows who ended the waits of the graph above it, and hides them again. */
import { WAITED } from "../../logic/waits/wakers.ts";
import { navigate, page } from "../../state/address/page.ts";
import { hasGraph } from "../../state/moments/wokenBy.ts";

export function WokenTool() {
  const { type, woken } = page.value;
  if (type !== WAITED) return null;
  const isShown = woken && hasGraph.value;
  return (
    <button
      type="button"
      class="button"
      aria-pressed={isShown}
      title="Who ended these waits, as a second graph above this one, by the time of the waits"
      data-testid="woken-tool"
      onClick={() => navigate({ woken: !isShown, waker: "", ...(hasGraph.value ? {} : { pane: "both" }) })}
    >
      Woken by
    </button>
  );
}
