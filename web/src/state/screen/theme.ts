/** The theme in effect: the chosen one or the system's, and on paper the light one. */
import { computed, effect, signal } from "@preact/signals";
import { fields } from "../address/page.ts";
import { printing } from "./printing.ts";

const isSystemDark = signal(false);

export const theme = computed<"light" | "dark">(() =>
  printing.value ? "light" : fields.theme.value || (isSystemDark.value ? "dark" : "light"),
);

export function startTheme(): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  isSystemDark.value = system.matches;
  system.addEventListener("change", () => {
    isSystemDark.value = system.matches;
  });
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}
