/** From the window that is looked at to a comparison. */
import { type Window, windowOf } from "../../logic/time/windows.ts";
import { navigate, page } from "../../state/address/page.ts";

export function compareWithBefore(): void {
  compare(windowOf(page.value, Date.now()), null, null);
}

/** Without a side A, the page chooses it: time that was covered, in which the selection ran. */
export function compare(window: Window, base: Window | null, chart: Window | null): void {
  navigate({
    view: "compare",
    focus: "",
    from: String(window.from),
    until: String(window.until),
    baseFrom: base === null ? "" : String(base.from),
    baseUntil: base === null ? "" : String(base.until),
    baseQuery: "",
    chartFrom: chart === null ? "" : String(chart.from),
    chartUntil: chart === null ? "" : String(chart.until),
    live: false,
  });
}
