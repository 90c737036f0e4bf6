/** Whether the page is being printed. Paper is white, and has its own width. */
import { type ReadonlySignal, signal } from "@preact/signals";

const onPaper = signal(false);

export const printing: ReadonlySignal<boolean> = onPaper;

export function startPrinting(): void {
  addEventListener("beforeprint", () => document.documentElement.classList.add("paper"));
  addEventListener("afterprint", () => document.documentElement.classList.remove("paper"));
  const paper = matchMedia("print");
  onPaper.value = paper.matches;
  paper.addEventListener("change", () => {
    onPaper.value = paper.matches;
  });
}
