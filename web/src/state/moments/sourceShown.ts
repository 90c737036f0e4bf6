/** Where the source of the selected frame is, once it is known: for its menu, which is there before all that asks. */
import { signal } from "@preact/signals";

export const sourceShown = signal<{ name: string; module: string; href: string } | null>(null);
